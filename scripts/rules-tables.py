#!/usr/bin/env python3
"""The tables in docs/rules.md: discounted wins, probabilities to lose, and tiles that can be forced.

usage: scripts/rules-tables.py [PROGRAM] [OPTION...]    default: target/release/exact2048

Options are passed to solve, for example --threads 2. Takes about five minutes of one core, 200 MiB of memory and 150 MiB of
temporary disk space. With --wide as the first option, 4x4 to 32 is solved too, and 4x3 to 64 and 128 against an adversary.
This takes additional hours of one core, and 14 GB.
"""
import json
import math
import subprocess
import sys
import tempfile

# Boards, tiles, and the published mean over the canonical starts with a discount of 0.95.
DISCOUNTED = [
    ("2x2", 8, 0.8586338050868054),
    ("2x2", 16, 0.6569435249319412),
    ("2x2", 32, 0.040307225413361666),
    ("3x3", 8, 0.8513829851577063),
    ("3x3", 16, 0.6619606694301722),
    ("3x3", 32, 0.4295693906299743),
    ("3x3", 64, 0.19453624851315515),
    ("3x3", 128, 0.04185980949719648),
    ("3x3", 256, 0.0020156432845151906),
    ("3x3", 512, 3.7091897410257226e-06),
    ("3x3", 1024, 3.7321372076390904e-13),
    ("4x4", 8, 0.8470356657144851),
    ("4x4", 16, 0.6580197032129473),
]
WIDE = [("4x4", 32, 0.4258949992103714)]
LOST = [
    ("3x2", 32),
    ("3x2", 64),
    ("3x2", 128),
    ("4x2", 64),
    ("4x2", 128),
    ("4x2", 256),
    ("4x2", 512),
    ("3x3", 64),
    ("3x3", 128),
    ("3x3", 256),
    ("3x3", 512),
    ("3x3", 1024),
]
FORCED = [("2x2", 8), ("3x2", 16), ("4x2", 32), ("3x3", 32), ("5x2", 32)]
WIDE_FORCED = [("4x3", 64)]


def solved(program, options, job):
    """The summary of a job, and the answers to all canonical starts."""
    with tempfile.TemporaryDirectory() as folder:
        run = folder + "/run"
        command = [program, "solve", "--run", run, "--json", *job.split(), *options]
        summary = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        rows, columns = map(int, summary["board"].split("x"))
        command = [program, "query", "--run", run, "--json", "-"]
        boards = "\n".join(starts(rows, columns))
        answers = subprocess.run(command, input=boards, stdout=subprocess.PIPE, check=True, text=True).stdout
        by_board = {answer["canonical"]: answer for answer in map(json.loads, answers.splitlines())}
        return summary, list(by_board.values())


def starts(rows, columns):
    """Two tiles in any two cells."""
    cells = range(rows * columns)
    for first in cells:
        for second in range(first):
            for tiles in [(2, 2), (2, 4), (4, 2), (4, 4)]:
                board = [tiles[0] if c == first else tiles[1] if c == second else 0 for c in cells]
                lines = (board[columns * r : columns * (r + 1)] for r in range(rows))
                yield " / ".join(" ".join(map(str, line)) for line in lines)


def rounded_up(bound):
    """A bound with two digits, rounded up."""
    unit = 10.0 ** (math.floor(math.log10(bound)) - 1)
    return f"{math.ceil(bound / unit) * unit:.1e}"


def table(header, rows):
    print("| " + " | ".join(header) + " |")
    print("|---|" + "--:|" * (len(header) - 1))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)
    print()


def discounted(program, options, games):
    for board, tile, published in games:
        job = f"--board {board} --objective reach:{tile} --discount 0.95 --precision 64"
        summary, answers = solved(program, options, job)
        mean = sum(answer["value"] for answer in answers) / len(answers)
        if abs(mean - published) > 1e-10 * published:
            sys.exit(f"error: {job}: expected the published {published!r}, found {mean!r}")
        start = summary["start"]["expected"]
        yield [f"{board} to {tile}", f"{mean:.10g}", f"{published:.10g}", f"{start:.10g}"]


def lost(program, options):
    for board, tile in LOST:
        summary, _ = solved(program, options, f"--board {board} --objective lose:{tile} --precision 64")
        start = summary["start"]
        yield [f"{board} to {tile}", f"{start['expected']:.10g}", rounded_up(start["error_bound"])]


def forced(program, options, games):
    for board, tile in games:
        values = []
        for wanted in (tile, 2 * tile):
            job = f"--board {board} --objective reach:{wanted} --spawner worst --keep starts"
            values.append(solved(program, options, job)[0]["start"]["expected"])
        if values != [1, 0]:
            sys.exit(f"error: {board}: expected {tile} as the largest tile that can be forced, found values {values}")
        score = "-"
        if board in ("2x2", "3x2", "4x2", "3x3"):
            summary, _ = solved(program, options, f"--board {board} --spawner worst")
            score = f"{summary['start']['expected']:,.0f}"
        job = f"--board {board} --objective reach:{tile} --spawner worst --discount 1/2 --precision 64 --keep starts"
        worth = solved(program, options, job)[0]["start"]["expected"]
        moves = 0
        while worth < 1:
            worth, moves = 2 * worth, moves + 1
        yield [board, str(tile), str(moves), score]


def main():
    arguments = sys.argv[1:]
    program = arguments.pop(0) if arguments and not arguments[0].startswith("-") else "target/release/exact2048"
    wide = "--wide" in arguments[:1]
    options = arguments[wide:]
    games, boards = DISCOUNTED + wide * WIDE, FORCED + wide * WIDE_FORCED
    table(["Game", "Mean over starts", "Published", "Random start"], discounted(program, options, games))
    table(["Game", "Chance to lose", "Error at most"], lost(program, options))
    table(["Board", "Forced tile", "Moves at most", "Score that can be forced"], forced(program, options, boards))


main()
