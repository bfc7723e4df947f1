#!/usr/bin/env python3
"""Checks published numbers of states before a tile is made, without dead ones, that take too long for a test.

usage: scripts/check-states.py [--wide] [PROGRAM] [OPTION...]    default: target/release/exact2048

Options are passed to solve, for example --threads 2. Takes a minute or two of one core and 2 GiB of memory. With --wide,
4x4 to 32 is solved too, which takes an hour of one core and 10 GiB. Fails if a number differs from the published one.
"""
import json
import subprocess
import sys
import tempfile

# Board, tile, number of states up to symmetry with a legal move.
PUBLISHED = [("4x4", 8, 84_659), ("4x4", 16, 23_482_821)]
WIDE = [("4x4", 32, 1_566_798_892)]


def main():
    arguments = sys.argv[1:]
    wide = "--wide" in arguments[:1]
    arguments = arguments[wide:]
    program = arguments.pop(0) if arguments and not arguments[0].startswith("-") else "target/release/exact2048"
    failed = False
    for board, tile, published in PUBLISHED + wide * WIDE:
        with tempfile.TemporaryDirectory() as folder:
            run = folder + "/run"
            job = ["--board", board, "--objective", f"reach:{tile}", "--keep", "starts"]
            subprocess.run(
                [program, "solve", "--run", run, *job, *arguments], stdout=subprocess.DEVNULL, check=True
            )
            lines = subprocess.run(
                [program, "layers", "--run", run, "--dead", "--json"], stdout=subprocess.PIPE, check=True
            ).stdout.splitlines()
        layers = [json.loads(line) for line in lines]
        states, dead = (sum(layer[key] for layer in layers) for key in ("states", "dead"))
        is_right = states - dead == published
        failed |= not is_right
        verdict = "" if is_right else f"WRONG: {published:,} published"
        print(f"{board} to {tile}: {states:,} states, {dead:,} dead, {states - dead:,} live {verdict}", flush=True)
    sys.exit(1 if failed else 0)


main()
