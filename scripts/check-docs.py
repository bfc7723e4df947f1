#!/usr/bin/env python3
"""Checks the Markdown files of the repository: the width of lines, and that relative links lead somewhere.

Lines have at most 120 characters. Rows of tables, which cannot be broken, and lines that are one long link are let be.
A link to a heading (FILE#heading, #heading) must name one that is there, spelt as GitHub spells it.

    scripts/check-docs.py [FILE...]    # by default all that git knows of
"""

import functools
import pathlib
import re
import subprocess
import sys

WIDTH = 120
FENCE = re.compile(r"^\s*(```|~~~)")
CODE = re.compile(r"`+[^`]*`+")
LINK = re.compile(r"\[[^\]]*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")


def prose(text):
    """The lines outside code blocks, with their numbers."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, line


@functools.cache
def anchors(path):
    """The names that GitHub gives the headings of a file."""
    found, seen = set(), {}
    for _, line in prose(path.read_text()):
        if not (heading := re.match(r"^#{1,6}\s+(.*?)\s*#*$", line)):
            continue
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).replace("`", "")
        name = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
        again = seen[name] = seen.get(name, -1) + 1
        found.add(f"{name}-{again}" if again else name)
    return found


def wrong_link(path, target):
    """What is wrong with a link, or nothing."""
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return None
    file, _, anchor = target.partition("#")
    there = path.parent / file if file else path
    if not there.exists():
        return f"links to {target}, which is not there"
    if anchor and there.suffix == ".md" and anchor not in anchors(there):
        return f"links to {target}, but {there} has no such heading"
    return None


def problems(path):
    """What is wrong with one file."""
    text = path.read_text()
    for number, line in enumerate(text.splitlines(), 1):
        one_link = re.fullmatch(r"\s*\S*\]\(\S+\)\S*|\s*<?https?://\S+", line)
        if len(line) > WIDTH and not line.lstrip().startswith("|") and not one_link:
            yield f"{path}:{number}: {len(line)} characters, at most {WIDTH} are allowed"
    # A link may be broken into two lines, so that they are looked for in the whole text.
    lines = dict(prose(text))
    whole = "\n".join(CODE.sub("", lines.get(number, "")) for number in range(1, max(lines, default=0) + 1))
    for link in LINK.finditer(whole):
        if wrong := wrong_link(path, link[1]):
            yield f"{path}:{whole.count(chr(10), 0, link.start()) + 1}: {wrong}"


def main(arguments):
    """Prints what is wrong, and says by the exit code whether anything is."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    names = arguments or subprocess.run(listed, check=True, capture_output=True, text=True).stdout.splitlines()
    files = [path for name in names if (path := pathlib.Path(name)).exists()]
    if not files:
        sys.exit("error: no Markdown file found")
    found = [problem for path in files for problem in problems(path)]
    print(*found, sep="\n", end="\n" if found else "")
    if found:
        sys.exit(f"error: {len(found)} problems in {len(files)} Markdown files")
    print(f"{len(files)} Markdown files are in order")


main(sys.argv[1:])
