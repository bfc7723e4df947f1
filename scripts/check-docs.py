#!/usr/bin/env python3
"""Checks the pages and the English of the repository.

    scripts/check-docs.py [FILE...]    # by default every file that git knows
    scripts/check-docs.py --count      # the median sentence and the words of the pages

Pages (Markdown): lines have at most 120 characters, except rows of tables and lines that are one long link. Relative links
lead to a file, and to a heading in it if they name one. Below its title a page has an introduction.

English (pages, comments, texts in strings): no banned word, no sentence over 30 words, no comment that begins with a pronoun
such as What or Who.
"""

import argparse
import functools
import pathlib
import re
import statistics
import subprocess
import sys

WIDTH = 120
MOST_WORDS = 30
FENCE = re.compile(r"^\s*(```|~~~)")
CODE = re.compile(r"`+[^`]*`+")
LINK = re.compile(r"\[[^\]]*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")

BANNED = re.compile(
    r"\b(?:told|foretold|foretells?|as ever|besides|by itself|of its own|such as are|(?:let|lets|letting) go of"
    r"|(?:take|takes|taken|taking|took) in|looks? whether|looked whether|(?:come|comes|came) to|(?:be|is|are|was|were|been) at it|worth saying"
    r"|whoever|nobody|somebody)\b",
    re.IGNORECASE,
)
PRONOUN = re.compile(r"^(?:What|Who|Whoever|Nobody|Somebody)\b")
COMMENT = {".rs": r"\s*//[/!]?", ".proto": r"\s*//", ".js": r"\s*//", ".py": r"\s*#", ".sh": r"\s*#", ".toml": r"\s*#"}
STRING = re.compile(r'(?<!\w)"((?:[^"\\]|\\.)*)"', re.S)


def prose(text):
    """Yields the lines outside code blocks, with their numbers."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
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
    """Describes a broken link; None if it leads somewhere."""
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return None
    file, _, anchor = target.partition("#")
    there = path.parent / file if file else path
    if not there.exists():
        return f"links to {target}, which is not there"
    if anchor and there.suffix == ".md" and anchor not in anchors(there):
        return f"links to {target}, but {there} has no such heading"
    return None


def page_problems(path):
    """Yields the line and the description of each fault in the form of a page."""
    text = path.read_text()
    for number, line in enumerate(text.splitlines(), 1):
        one_link = re.fullmatch(r"\s*\S*\]\(\S+\)\S*|\s*<?https?://\S+", line)
        if len(line) > WIDTH and not line.lstrip().startswith("|") and not one_link:
            yield number, f"{len(line)} characters, at most {WIDTH} are allowed"
    # A link may be broken into two lines, so the search covers the whole text.
    lines = dict(prose(text))
    whole = "\n".join(CODE.sub("", lines.get(number, "")) for number in range(1, max(lines, default=0) + 1))
    for link in LINK.finditer(whole):
        if wrong := wrong_link(path, link[1]):
            yield whole.count("\n", 0, link.start()) + 1, wrong
    first = next((line for line in text.splitlines()[1:] if line.strip()), "")
    if not re.match(r"[\w\[`*\"“]", first) or first.startswith("* "):
        yield 1, "expected an introduction below the title"


def paragraphs(lines):
    """Joins numbered lines of prose: yields the first number and the text of each paragraph, list item and cell."""
    begun, words = 0, []
    for number, line in [*lines, (0, "")]:
        line = line.strip()
        apart = not line or re.match(r"[|#<]|[-*+] |\d+\. |!\[", line)
        if words and (apart or number != last + 1):
            yield begun, " ".join(words)
            words = []
        last = number
        if line.startswith("|"):
            yield from ((number, cell.strip()) for cell in line.strip("|").split("|"))
        elif line and not line.startswith(("#", "<")):
            begun = begun if words else number
            words.append(re.sub(r"^(?:[-*+]|\d+\.) +", "", line))


def comments(path, text):
    """Yields the paragraphs of the comments in a source file."""
    marker = re.compile(rf"^{COMMENT[path.suffix]} ?(?P<text>.*)$")
    fenced, previous, kept = False, 0, []
    for number, line in enumerate(text.splitlines(), 1):
        if not (found := marker.match(line)) or line.startswith("#!"):
            continue
        fenced = fenced and number == previous + 1
        previous = number
        if FENCE.match(found["text"]):
            fenced = not fenced
        elif not fenced and not found["text"].startswith("    "):
            kept.append((number, found["text"]))
    yield from paragraphs(kept)


def strings(text):
    """Yields the texts in the string literals of a Rust file, without those of its tests."""
    product = re.split(r"#\[cfg\(test\)\]\s*mod tests \{", text)[0]
    product = re.sub(r"^\s*//.*$", "", product, flags=re.M)
    for literal in STRING.finditer(product):
        where = product.count("\n", 0, literal.start()) + 1
        # Examples of commands are indented; they stand alone, as paragraphs do.
        words = re.sub(r"\\\n\s*", " ", literal[1]).replace("\\n", "\n")
        for block in re.split(r"\n\s*\n|\n(?=  )|(?<=\S)\n(?=\S.*:\n)", words):
            block = re.sub(r"\{[^}]*\}", "value", block)
            if len(block.split()) >= 3 and not block.startswith("  ") and "::" not in block:
                # "expected X, found Y; do Z": a semicolon ends a sentence of an error.
                yield from ((where, part) for part in " ".join(block.split()).split("; "))


def sentences(paragraph):
    """Splits a paragraph; code counts as one word, a link as its text."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", CODE.sub("Code", paragraph))
    return [part for part in re.split(r"(?<=[.!?])[\s)\"*]+(?=[\"(*\[]*[A-Z0-9`])|\s(?=\[default)", plain) if part]


def english_problems(where, paragraph, is_comment=False):
    """Yields the line and the description of each fault in the English of a paragraph."""
    plain = CODE.sub("code", paragraph)
    for banned in BANNED.finditer(plain):
        yield where, f"banned: {banned[0]!r}"
    if is_comment and PRONOUN.match(plain):
        yield where, f"begins with {plain.split()[0]!r}; expected a noun or a verb"
    for sentence in sentences(paragraph):
        if (words := len(re.findall(r"[\w'’/.,×^+=<>-]*\w[\w'’/.,×^+=<>-]*", sentence))) > MOST_WORDS:
            yield where, f"{words} words in a sentence, at most {MOST_WORDS}: {sentence[:60]}…"


def problems(path):
    """Yields every fault of a file."""
    text = path.read_text()
    if path.suffix == ".md":
        yield from page_problems(path)
        for where, paragraph in paragraphs(prose(text)):
            yield from english_problems(where, paragraph)
        return
    for where, paragraph in comments(path, text):
        yield from english_problems(where, paragraph, is_comment=True)
    is_test = "tests" in path.parts or "benches" in path.parts or path.stem == "tests"
    if path.suffix == ".rs" and not is_test:
        for where, words in strings(text):
            yield from english_problems(where, words)


def count(files):
    """Prints the words of the pages and the median length of their sentences."""
    pages = [path for path in files if path.suffix == ".md" and path.name != "CHANGELOG.md"]
    lengths = [
        len(sentence.split())
        for path in pages
        for _, paragraph in paragraphs(prose(path.read_text()))
        for sentence in sentences(paragraph)
        if len(sentence.split()) > 2
    ]
    words = sum(len(path.read_text().split()) for path in pages)
    print(f"{words} words in {len(pages)} pages, {statistics.median(lengths)} words in the median sentence")


def main():
    """Prints the problems; the exit code is 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", action="store_true", help="print the size of the pages")
    parser.add_argument("files", nargs="*", help="files to check, by default every file that git knows")
    options = parser.parse_args()
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = options.files or subprocess.run(listed, check=True, capture_output=True, text=True).stdout.splitlines()
    kinds = {".md", *COMMENT}
    files = [path for name in names if (path := pathlib.Path(name)).suffix in kinds and path.exists()]
    if not files:
        sys.exit("error: no file to check")
    if options.count:
        return count(files)
    found = [f"{path}:{where}: {problem}" for path in files for where, problem in problems(path)]
    print(*found, sep="\n", end="\n" if found else "")
    if found:
        sys.exit(f"error: {len(found)} problems in {len(files)} files")
    print(f"{len(files)} files are in order")


main()
