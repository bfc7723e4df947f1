#!/usr/bin/env python3
"""The tables in docs/results/README.md: results of solved boards, and perfect play on them.

Takes a quarter of an hour of a core, 1 GiB of memory and 2 GB of temporary disk space. Boards of --wide take half an hour
to four hours of two cores each, 10 GiB of memory and up to 20 GB in the folder for temporary files. Other options are
passed to solve, for example --threads 4.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from decimal import ROUND_CEILING, Decimal

SCORE = [[board] for board in ("2x2", "3x2", "4x2", "3x3", "5x2")]
REACH = [
    ["3x3", "--objective", "reach:512"],
    ["3x3", "--objective", "reach:1024"],
    ["5x2", "--objective", "reach:256"],
    ["5x2", "--objective", "reach:1024"],
    ["4x4", "--objective", "reach:16"],
]
WIDE = [["4x3", "--objective", f"reach:{tile}"] for tile in (256, 512, 1024, 2048)]
WIDE += [["4x4", "--objective", "reach:32"]]
# Options that save space and do not change the results.
LEAN = ["--keep", "32", "--memory", "10GiB"]


def ask(*command):
    """The JSON answer of a command of the program."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(command)} failed (status {done.returncode}); run it by hand to see why")
    return json.loads(done.stdout)


def rounded_up(bound):
    """A bound with two digits, rounded up."""
    unit = Decimal(1).scaleb(bound.adjusted() - 1)
    return f"{bound.quantize(unit, ROUND_CEILING):.1e}"


def value(number, bound):
    """A value, to the digits that its bound allows, and the bound, which includes their rounding."""
    digits = 0
    while digits < 15 and bound * 10**digits < 1:
        digits += 1
    printed = f"{number:.{digits}f}"
    rounding = abs(Decimal(printed) - Decimal(number))
    return f"{Decimal(printed):,} ± {rounded_up(Decimal(bound) + rounding)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/release/exact2048", help="default: %(default)s")
    parser.add_argument("--wide", action="store_true", help="include the boards that take long")
    parser.add_argument("--only", metavar="JOB", help="only jobs with this prefix, for example '4x3 --objective reach:1024'")
    options, of_solve = parser.parse_known_args()
    program = options.program
    jobs = [job for job in SCORE + REACH + WIDE if options.wide or options.only or job not in WIDE]
    jobs = [job for job in jobs if " ".join(job).startswith(options.only or "")]
    if not jobs:
        parser.error(f"no job begins with {options.only}")
    print("| `solve --board` | States | Afterstates | Value at the start | Fingerprint |")
    print("|---|--:|--:|--:|---|")
    perfect = []
    for job in jobs:
        with tempfile.TemporaryDirectory() as folder:
            run = f"{folder}/run"
            lean = LEAN if job in WIDE else []
            summary = ask(program, "solve", "--board", *job, "--run", run, "--json", *lean, *of_solve)
            start = summary["start"]
            print(
                f"| `{' '.join(job)}` | {summary['states']:,} | {summary['afterstates']:,}"
                f" | {value(start['expected'], start['error_bound'])} | `{summary['fingerprint']}` |",
                flush=True,
            )
            perfect.append((job, ask(program, "stats", "--run", run, "--json")))
    print()
    print("| `solve --board` | Moves of a game | Last layer | Largest tile at the end, and how likely |")
    print("|---|--:|--:|---|")
    for job, stats in perfect:
        likely = sorted(stats["tiles"], key=lambda tile: -tile["ended"])[:4]
        tiles = ", ".join(f"{tile['tile']:,}: {tile['ended']:.6f}" for tile in likely)
        moves, last = stats["moves"]["value"], stats["last_layer"]["mean"]
        print(f"| `{' '.join(job)}` | {moves:,.6f} | {last:,.1f} | {tiles} |", flush=True)


main()
