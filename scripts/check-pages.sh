#!/usr/bin/env bash
# Checks the types in the comments of all pages' JavaScript, with TypeScript and without a build. Fetches the pinned version
# of TypeScript with npm.
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

# Checks that the checker finds a deliberate mistake.
wrong=$(mktemp -d)
trap 'rm -rf "$wrong"' EXIT
printf '/** @param {number} n */\nexport function twice(n) { return 2 * n; }\ntwice("two");\n' > "$wrong/wrong.js"
printf '{ "extends": "%s", "include": ["wrong.js"] }\n' "$PWD/scripts/pages.tsconfig.json" > "$wrong/tsconfig.json"
if check "$wrong/tsconfig.json" >/dev/null; then
    printf 'error: the checker accepts a text as a number\n' >&2
    exit 1
fi
printf 'The types of the pages are correct.\n'
