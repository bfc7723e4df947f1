#!/usr/bin/env python3
"""Reads exports of a run with pyarrow, DuckDB and NumPy, and compares them with each other and with what queries say.

    scripts/check-exports.py PROGRAM

PROGRAM is exact2048. Solves a small board in a folder for the moment. What it needs of Python comes from PyPI, into an
environment of its own in target/exports.
"""

import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / "target" / "exports"
NEEDED = ["duckdb", "numpy", "pyarrow"]
BOARD = (3, 2)
MOVES = ["left", "right", "up", "down"]
# Of about as many states, a query for each.
QUERIED = 2000


def in_environment():
    """Goes on in an environment that has what is needed."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        venv.create(ENVIRONMENT, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *NEEDED], check=True)
    os.execv(python, [str(python), __file__, "--here", *sys.argv[1:]])


def text(board):
    """A packed board as queries take it."""
    rows, columns = BOARD
    tiles = [1 << (board >> 4 * cell & 15) for cell in range(rows * columns)]
    tiles = ["0" if tile == 1 else str(tile) for tile in tiles]
    return " / ".join(" ".join(tiles[row * columns : (row + 1) * columns]) for row in range(rows))


def check(name, is_right):
    if not is_right:
        sys.exit(f"error: {name}")
    print(f"ok: {name}")


def main(program):
    import duckdb
    import numpy
    import pyarrow.parquet as parquet

    size = "x".join(map(str, BOARD))
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        run = str(folder / "run")

        def call(*args, **options):
            done = subprocess.run([program, *args], check=True, capture_output=True, text=True, **options)
            return done.stdout

        solved = json.loads(call("solve", "--json", "--board", size, "--run", run))
        for what in ["states", "policy", "afterstates"]:
            for file_format in ["parquet", "npy", "csv"]:
                out = str(folder / f"{what}-{file_format}")
                call("export", "--run", run, "--what", what, "--format", file_format, "-o", out)
            files = {kind: folder / f"{what}-{kind}" / f"*.{kind}" for kind in ["parquet", "npy", "csv"]}
            arrow = parquet.read_table(folder / f"{what}-parquet")
            names = arrow.column_names
            columns = {name: arrow[name].to_numpy() for name in names}
            check(f"{what}: as many rows as were counted", arrow.num_rows == solved[what.replace("policy", "states")])

            arrays = [numpy.load(path) for path in sorted(files["npy"].parent.glob("*.npy"))]
            array = numpy.concatenate(arrays)
            same = all(numpy.array_equal(array[name], columns[name], equal_nan=array[name].dtype.kind == "f") for name in names)
            check(f"{what}: NumPy reads what pyarrow does", list(array.dtype.names) == names and same)

            def by_duckdb(source):
                read = duckdb.sql(f"SELECT * FROM {source} ORDER BY layer, board").fetchnumpy()
                return all(numpy.array_equal(read[n], columns[n], equal_nan=read[n].dtype.kind == "f") for n in names)

            check(f"{what}: DuckDB reads the same Parquet", by_duckdb(f"read_parquet('{files['parquet']}')"))
            check(f"{what}: DuckDB reads the same CSV", by_duckdb(f"read_csv('{files['csv']}')"))

            file = parquet.ParquetFile(next(iter(sorted(files["parquet"].parent.glob("*.parquet")))))
            group = file.metadata.row_group(0)
            kinds = {group.column(at).compression for at in range(len(names))}
            board = group.column(names.index("board")).statistics
            layer = group.column(names.index("layer")).statistics
            has_statistics = board.min == columns["board"].min() and layer.max == columns["layer"].max()
            check(f"{what}: Zstandard and statistics", kinds == {"ZSTD"} and has_statistics)
            if what == "afterstates":
                continue

            step = max(1, arrow.num_rows // QUERIED)
            asked = range(0, arrow.num_rows, step)
            boards = "".join(text(int(columns["board"][row])) + "\n" for row in asked)
            answers = [json.loads(line) for line in call("query", "--run", run, "--json", "-", input=boards).splitlines()]
            wrong = 0
            for row, answer in zip(asked, answers, strict=True):
                moves = {move["move"]: move for move in answer["moves"]}
                if what == "states":
                    wrong += columns["value"][row] != answer["value"]
                    continue
                for bit, name in enumerate(MOVES):
                    value = float(columns[name][row])
                    move = moves.get(name, {})
                    expected = move.get("value") if move.get("legal", True) else None
                    wrong += math.isnan(value) if expected is not None else not math.isnan(value)
                    wrong += expected is not None and value != expected
                    wrong += bool(columns["best"][row] >> bit & 1) != bool(move.get("best"))
            check(f"{what}: {len(answers)} queries say the same", wrong == 0)


if __name__ == "__main__":
    if sys.argv[1:2] != ["--here"]:
        in_environment()
    if len(sys.argv) != 3:
        sys.exit("expected the program: scripts/check-exports.py PROGRAM")
    main(sys.argv[2])
