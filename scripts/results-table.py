#!/usr/bin/env python3
"""The tables in docs/results/README.md: what solved boards come to, and perfect play on them.

usage: scripts/results-table.py [PROGRAM] [OPTION...]    default: target/release/exact2048

Options are passed on to solve, for example --threads 4. Takes a quarter of an hour of a core, 1 GiB of memory and 2 GB of disk
for a moment. With --wide 4x4 to 32 is solved too, which takes half an hour of two cores and 10 GiB.
"""
import json
import subprocess
import sys
import tempfile

SCORE = [[board] for board in ("2x2", "3x2", "4x2", "3x3", "5x2")]
REACH = [
    ["3x3", "--objective", "reach:512"],
    ["3x3", "--objective", "reach:1024"],
    ["5x2", "--objective", "reach:256"],
    ["5x2", "--objective", "reach:1024"],
    ["4x4", "--objective", "reach:16"],
]
WIDE = [["4x4", "--objective", "reach:32", "--keep", "16", "--memory", "10GiB"]]


def ask(*command):
    """What a command of the program answers as JSON."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(command)} failed (status {done.returncode}); run it by hand to see why")
    return json.loads(done.stdout)


def value(number, bound):
    """A value and its bound; of the value the digits that the bound leaves, and one more."""
    digits = 0
    while digits < 15 and bound * 10**digits < 1:
        digits += 1
    return f"{number:,.{digits}f} ± {bound:.1e}"


def main():
    arguments = sys.argv[1:]
    is_wide = "--wide" in arguments
    arguments = [argument for argument in arguments if argument != "--wide"]
    program = arguments.pop(0) if arguments and not arguments[0].startswith("-") else "target/release/exact2048"
    print("| `solve --board` | States | Afterstates | Value at the start | Fingerprint |")
    print("|---|--:|--:|--:|---|")
    perfect = []
    for job in SCORE + REACH + (WIDE if is_wide else []):
        with tempfile.TemporaryDirectory() as folder:
            run = f"{folder}/run"
            summary = ask(program, "solve", "--board", *job, "--run", run, "--json", *arguments)
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
