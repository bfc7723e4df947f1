#!/usr/bin/env python3
"""Runs the code blocks of README, docs/ and the Python package's README as they stand.

    scripts/check-snippets.py PROGRAM PYTHON [PAGE...]

PROGRAM is exact2048; PYTHON has the wheel and DuckDB. Each page gets a fresh folder. Its blocks run there in order, each in
a separate process: `sh` and `console` in bash, `python` in PYTHON, `sql` in DuckDB; `json` is parsed.

The output of a command in a `console` block is compared with the block. Times, sizes and numbers of threads may differ, and
"…" at the end of a line stands for the rest of it. A comment after the last expression of a `python` block is its expected
value. `cargo run` runs PROGRAM. Comments directly before a block change its handling:

    <!-- snippet skip: REASON -->       the block is not run
    <!-- snippet after: COMMAND -->     COMMAND runs first, once; its files are copied to all pages that need them
    <!-- snippet serves -->             the block is one server, which runs until the next one or the end of the page
    <!-- snippet output -->             the block shows the output of the previous block
"""

import collections
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^(\s*)```(\S*)\s*$")
MARK = re.compile(r"^\s*<!-- snippet (skip|after|serves|output)(?:: (.*))? -->$")
LANGUAGES = ["sh", "console", "python", "sql", "json"]
# Time limit of a block, also on a busy machine.
LIMIT_S = 600
# Characters shown from the end of the output of a failed command.
MOST_SHOWN = 3000

CARGO = """#!/bin/sh
while [ "$1" != -- ]; do
    case $1 in run | --release | -q) shift ;; *) echo "cargo $1 does not run here" >&2; exit 1 ;; esac
done
shift
exec exact2048 "$@"
"""

RUN_PYTHON = """
import ast, sys
source = sys.stdin.read()
tree, names = ast.parse(source), {"__name__": "__main__"}
last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
exec(compile(tree, "snippet", "exec"), names)
if last is not None:
    value = eval(compile(ast.Expression(last.value), "snippet", "eval"), names)
    shown = source.rstrip().splitlines()[last.end_lineno - 1].encode()[last.end_col_offset:].decode().strip(" #")
    if shown and shown != repr(value):
        sys.exit(f"expected {shown}, found {value!r}")
"""

RUN_SQL = "import duckdb, sys; print(duckdb.sql(sys.stdin.read()))"


class Failed(Exception):
    """The reason why a block differs from its page."""


@dataclasses.dataclass
class Block:
    """A fenced block, with the marks before it."""

    page: pathlib.Path
    line: int
    language: str
    text: str
    marks: list[tuple[str, str | None]]

    def marked(self, kind):
        return [value for name, value in self.marks if name == kind]


def blocks(page):
    """The fenced blocks of a page."""
    lines = iter(enumerate(page.read_text().splitlines(), 1))
    marks = []
    for number, line in lines:
        if mark := MARK.match(line):
            marks.append((mark[1], mark[2]))
        elif line.lstrip().startswith("<!-- snippet"):
            raise Failed(f"{page}:{number}: unknown mark of a snippet: {line}")
        elif fence := FENCE.match(line):
            inside = []
            for _, line in lines:
                if line.strip() == "```":
                    break
                inside.append(line.removeprefix(fence[1]))
            yield Block(page, number, fence[2], "\n".join(inside) + "\n", marks)
            marks = []
        elif marks and line.strip():
            raise Failed(f"{page}:{number}: expected a code block after the mark of a snippet")


def alike(text):
    """Lines of a text with times, sizes, numbers of threads and widths of columns made equal."""
    number = r"\d[\d,.]*(?:e-?\d+)?"
    text = re.sub(rf"({number} (ns|µs|ms|s|min|hours?)\b ?)+", "TIME ", text)
    text = re.sub(number + r" (B|kB|MB|GB|kiB|KiB|MiB|GiB)\b", "SIZE", text)
    text = re.sub(r"\d+ threads?\b", "THREADS", text)
    return [re.sub(r" +", " ", line).rstrip() for line in text.rstrip().splitlines()]


def compare(shown, found):
    """Requires that a page shows the actual output."""
    expected, lines = alike(shown), alike(found)
    for at in range(max(len(expected), len(lines))):
        one, other = (of[at] if at < len(of) else "nothing" for of in (expected, lines))
        if one != other and not (one.endswith("…") and other.startswith(one[:-1])):
            raise Failed(f"the page shows\n    {one}\nand the program prints\n    {other}")


def console(text):
    """The commands of a console, each with the output that follows it."""
    if "$ " not in text:
        return [(text, "")]
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    return [(command, output) for command, _, output in (part.partition("\n") for part in parts)]


def read(log):
    """The current content of a file that another process writes."""
    return os.pread(log.fileno(), os.fstat(log.fileno()).st_size, 0).decode()


class Page:
    """A page's folder, and the processes that its blocks started."""

    def __init__(self, folder, environment, python, made):
        self.folder, self.environment, self.python, self.made = folder, environment, python, made
        self.groups, self.server, self.output = [], None, ""
        folder.mkdir()

    def start(self, command, stdin):
        # The output goes to files, because background processes would keep pipes open.
        logs = [tempfile.TemporaryFile("w+") for _ in range(2)]
        options = {"cwd": self.folder, "env": self.environment, "text": True, "start_new_session": True}
        process = subprocess.Popen(command, stdin=stdin, stdout=logs[0], stderr=logs[1], **options)
        self.groups.append(process)
        return process, logs

    def run(self, command, given=None):
        """Runs a command to its end, and returns its standard output."""
        process, logs = self.start(command, subprocess.DEVNULL if given is None else subprocess.PIPE)
        try:
            process.communicate(given, timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            raise Failed(f"not done after {LIMIT_S} s") from None
        output, errors = map(read, logs)
        if process.returncode:
            raise Failed(f"exit code {process.returncode}\n{(output + errors)[-MOST_SHOWN:]}")
        return output

    def shell(self, script):
        return self.run(["bash", "-euo", "pipefail", "-c", script])

    def prepare(self, command):
        """Copies the files that a command makes; it runs once for all pages."""
        if command not in self.made:
            folder = self.folder.parent / f"made-{len(self.made)}"
            Page(folder, self.environment, self.python, self.made).shell(command)
            self.made[command] = folder
        shutil.copytree(self.made[command], self.folder, dirs_exist_ok=True)

    def serve(self, command):
        """Stops the previous server, starts another one, and waits until it listens."""
        self.end_server()
        process, logs = self.start(["bash", "-c", command], subprocess.DEVNULL)
        self.server = process
        until = time.monotonic() + LIMIT_S
        while time.monotonic() < until and process.poll() is None:
            if "listening" in read(logs[0]):
                return
            time.sleep(0.05)
        raise Failed(f"the server does not listen\n{read(logs[1])}")

    def end_server(self):
        if self.server is not None:
            if (code := self.server.poll()) is not None:
                raise Failed(f"the server has ended with {code}")
            self.server.terminate()
            self.server.wait(LIMIT_S)
            self.server = None

    def execute(self, block):
        for command in block.marked("after"):
            self.prepare(command)
        if block.marked("output"):
            compare(block.text, self.output)
        elif block.marked("serves"):
            self.serve(block.text)
        elif block.language == "sh":
            self.output = self.shell(block.text)
        elif block.language == "console":
            for command, shown in console(block.text):
                found = self.shell(command)
                if shown:
                    compare(shown, found)
        elif block.language == "json":
            json.loads(block.text)
        else:
            code = RUN_PYTHON if block.language == "python" else RUN_SQL
            self.run([self.python, "-c", code], block.text)

    def end(self):
        """Ends all background processes of the blocks."""
        for process in self.groups:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


def main(program, python, *names):
    listed = ["README.md", "python/README.md", *sorted(map(str, (ROOT / "docs").rglob("*.md")))]
    pages = [ROOT / name for name in names or listed]
    ran, skipped, failures = collections.Counter(), [], []
    with tempfile.TemporaryDirectory() as folder:
        folder, made = pathlib.Path(folder), {}
        tools = folder / "bin"
        tools.mkdir()
        (tools / "exact2048").symlink_to(pathlib.Path(program).resolve())
        (tools / "cargo").write_text(CARGO)
        (tools / "cargo").chmod(0o755)
        python = str(pathlib.Path(python).absolute())
        path = [str(tools), str(pathlib.Path(python).parent), os.environ["PATH"]]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("EXACT2048_", "AWS_"))}
        environment |= {"PATH": os.pathsep.join(path), "HOME": str(folder)}
        for number, path in enumerate(pages):
            page = Page(folder / f"page-{number}", environment, python, made)
            name = path.relative_to(ROOT)
            try:
                for block in blocks(path):
                    where = f"{name}:{block.line}"
                    if (block.language not in LANGUAGES and not block.marks) or block.marked("skip"):
                        skipped += [f"{where}: {reason}" for reason in block.marked("skip")]
                        continue
                    begun = time.monotonic()
                    try:
                        page.execute(block)
                    except Exception as error:
                        raise Failed(f"{where}: {error}") from error
                    ran[block.language] += 1
                    print(f"ok: {where} ({block.language}, {time.monotonic() - begun:.1f} s)", flush=True)
                page.end_server()
            except Failed as error:
                print(f"FAILED: {error}", flush=True)
                failures.append(name)
            finally:
                page.end()
    print(*(f"skipped: {line}" for line in skipped), sep="\n")
    counts = ", ".join(f"{count} {language}" for language, count in ran.items())
    print(f"{ran.total()} snippets ran ({counts}), {len(skipped)} were skipped")
    if failures:
        sys.exit(f"error: snippets of {len(failures)} pages failed: {', '.join(map(str, failures))}")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
