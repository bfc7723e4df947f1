#!/usr/bin/env bash
# Checks the types of the JavaScript of all pages, which are written in its comments: with TypeScript, and without a build.
# Fetches that checker with npm, in the version named here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

typescript=5.9.3

if ! command -v npm >/dev/null; then
    printf 'error: npm is not installed; it comes with Node.js (apt-get install npm)\n' >&2
    exit 1
fi
check() {
    npm exec --yes --package "typescript@$typescript" -- tsc --project "$1"
}
check scripts/pages.tsconfig.json

# One that finds nothing in what is wrong would prove nothing.
wrong=$(mktemp -d)
trap 'rm -rf "$wrong"' EXIT
printf '/** @param {number} n */\nexport function twice(n) { return 2 * n; }\ntwice("two");\n' > "$wrong/wrong.js"
printf '{ "extends": "%s", "include": ["wrong.js"] }\n' "$PWD/scripts/pages.tsconfig.json" > "$wrong/tsconfig.json"
if check "$wrong/tsconfig.json" >/dev/null; then
    printf 'error: the checker takes a text for a number\n' >&2
    exit 1
fi
printf 'The types of the pages hold.\n'
