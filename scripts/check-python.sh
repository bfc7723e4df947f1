#!/usr/bin/env bash
# Builds the Python package as a wheel and installs it into a fresh environment. Runs the tests, mypy, the example for some
# games, and the notebook docs/tour.ipynb there. scripts/check-snippets.py uses the same environment, and DuckDB in it.
#
#   scripts/check-python.sh [PROGRAM]    PROGRAM is exact2048, by default target/debug/exact2048
#
# Needs Rust and python3 with venv. Installs other packages from PyPI into target/python.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

step() {
    printf '\n==> %s\n' "$*"
    "$@"
}

here=$PWD/target/python
export EXACT2048_PROGRAM=${1:-$PWD/target/debug/exact2048}
export MPLBACKEND=agg PIP_DISABLE_PIP_VERSION_CHECK=1
rm -rf "$here"
python3 -m venv "$here/build"
python3 -m venv "$here/fresh"
step "$here/build/bin/pip" install --quiet "maturin>=1.9,<2"

# The profile of the tests, so that crates are not built again.
step "$here/build/bin/maturin" build --quiet --manifest-path python/Cargo.toml \
    --profile dev --interpreter python3 --out "$here/wheels"
[[ $(echo "$here"/wheels/*) == *-abi3-* ]] || { printf 'error: the wheel is not for every Python\n' >&2; exit 1; }

# Installs only the wheel, as users do.
step "$here/fresh/bin/pip" install --quiet "$(echo "$here"/wheels/*.whl)[gym]" pytest mypy grpcio-tools duckdb matplotlib nbclient \
    ipykernel
cp -r python/tests python/examples proto/proto "$here/"
cp python/pyproject.toml docs/tour.ipynb "$here/"
cd "$here"
step fresh/bin/pytest --quiet tests
step fresh/bin/mypy --config-file pyproject.toml
step fresh/bin/python examples/ntuple.py --run runs/3x3 --games 15000 --output regret.png
step fresh/bin/jupyter execute tour.ipynb
