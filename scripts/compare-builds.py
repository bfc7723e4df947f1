#!/usr/bin/env python3
"""Compares the speed of two builds of the program: the table of ratios in docs/dev/performance.md.

Both programs solve the same boards in turn, so that other load of the machine affects both alike. The script compares core
time (user and system, all threads together), wall time and peak resident memory. Counts and the starts' values must
agree.

    scripts/compare-builds.py OLD NEW                       3x3, 5x2 and 4x3 to layer 240, once each
    scripts/compare-builds.py OLD NEW --rows 3x3 --rounds 5
    scripts/compare-builds.py OLD NEW --rows all            takes hours and 25 GB of disk

Build the old program from the commit to compare with: `cargo build --profile dist` or, without such a profile,
`cargo build --release`.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROWS = {
    "3x3": ["--board", "3x3"],
    "5x2": ["--board", "5x2"],
    "4x3-to240": ["--board", "4x3", "--until-layer", "240"],
    "4x3-to400": ["--board", "4x3", "--until-layer", "400"],
    "4x3-reach256": ["--board", "4x3", "--objective", "reach:256"],
}
USUAL = ["3x3", "5x2", "4x3-to240"]


def solve(program, row, threads, folder):
    """Core seconds, wall seconds, peak in bytes and results of one solve."""
    run = os.path.join(folder, "run")
    shutil.rmtree(run, ignore_errors=True)
    command = [program, "solve", *ROWS[row], "--run", run, "--threads", str(threads), "--json"]
    begun = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - begun
    shutil.rmtree(run, ignore_errors=True)
    if status != 0:
        sys.exit(f"error: {' '.join(command)} failed (status {status}); run it by hand to see why")
    summary = json.loads(output)
    # Error bounds may differ, because they depend on the proof and not on the computed values.
    start = summary.get("start") and {what: summary["start"][what] for what in ("expected", "by_layer")}
    results = json.dumps([summary["states"], summary["afterstates"], start])
    return usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss * 1024, results


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("old", help="the program to compare with")
    parser.add_argument("new", help="the program of this checkout")
    parser.add_argument("--rows", nargs="+", default=USUAL, choices=[*ROWS, "all"], help="jobs to solve")
    parser.add_argument("--rounds", type=int, default=1, help="number of solves of each; the table shows medians")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    rows = list(ROWS) if "all" in options.rows else options.rows
    print("| Solved | Core seconds, old | new | Ratio | Wall, old | new | Peak, old | new |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for row in rows:
            found = {program: [] for program in (options.old, options.new)}
            for _ in range(options.rounds):
                for program, measured in found.items():
                    measured.append(solve(program, row, options.threads, folder))
            different = {result[3] for results in found.values() for result in results}
            if len(different) > 1:
                sys.exit(f"error: {row}: the results differ: {', '.join(different)}")
            (old, old_wall, old_peak), (new, new_wall, new_peak) = (
                [statistics.median(result[i] for result in results) for i in range(3)] for results in found.values()
            )
            print(
                f"| {row} | {old:.2f} | {new:.2f} | {old / new:.2f}× | {old_wall:.2f} s | {new_wall:.2f} s"
                f" | {old_peak / 1e6:,.0f} MB | {new_peak / 1e6:,.0f} MB |",
                flush=True,
            )


if __name__ == "__main__":
    main()
