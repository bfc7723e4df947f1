#!/usr/bin/env bash
# Checks the syntax of all pages' JavaScript with Node.js, and the types in its comments with TypeScript, without a build.
# Fetches the pinned version of TypeScript with npm.
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

# TypeScript accepts two functions of one name in a module; browsers do not load such a page.
parse() {
    node --input-type=module --check < "$1"
}
for page in {explorer,cluster,net}/page/*.js; do
    parse "$page"
done

# Checks that the checkers find deliberate mistakes.
wrong=$(mktemp -d)
trap 'rm -rf "$wrong"' EXIT
printf '/** @param {number} n */\nexport function twice(n) { return 2 * n; }\ntwice("two");\n' > "$wrong/wrong.js"
printf '{ "extends": "%s", "include": ["wrong.js"] }\n' "$PWD/scripts/pages.tsconfig.json" > "$wrong/tsconfig.json"
if check "$wrong/tsconfig.json" >/dev/null; then
    printf 'error: the checker accepts a text as a number\n' >&2
    exit 1
fi
printf 'export function twice() {}\nfunction twice() {}\n' > "$wrong/wrong.js"
if parse "$wrong/wrong.js" 2>/dev/null; then
    printf 'error: the checker accepts two functions of one name\n' >&2
    exit 1
fi
printf 'The syntax and the types of the pages are correct.\n'
