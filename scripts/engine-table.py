#!/usr/bin/env python3
"""The table of the goals of the second engine, for two builds of the program: docs/dev/performance.md.

Each row is a ratio, measured for both programs in turn, so that other load of the machine affects both alike:

    3x3-yardstick    wall time of another solver, called as `YARDSTICK 3 3`, against that of `solve --threads 2`
    threads          wall time of 5x2 with one thread against that with --most-threads
    3x3-workers      wall time of a job on two workers of one thread against that of one process with two
    5x2-workers      wall time of a job on one worker of one thread against that on two
    least-memory     the smallest --memory of a whole 4x3 with two threads
    4x4-reach32      wall time and peak of 4x4 reach:32 within 8 GiB

    scripts/engine-table.py OLD NEW --rows 3x3-workers --rounds 9
    scripts/engine-table.py OLD NEW --rows all --yardstick PATH      takes an hour and more

The rows that compare core time are those of scripts/compare-builds.py. Two rows are measured only for this checkout: deep
layers by `cargo run --release -p exact2048-worker --example deep -- 4x3 9568`, and 1, 8 and 64 machines, with pushed
blocks, by `cargo run --release -p exact2048-coordinator --example scale -- --workers 1,8,64`. A build from scratch is
`cargo build --release` with an empty CARGO_TARGET_DIR.
"""

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

# The goal of each row.
ASKED = {
    "3x3-yardstick": "25×",
    "threads": "3.2× from 1 to 4",
    "3x3-workers": "at most 1.3×",
    "5x2-workers": "1.7×",
    "least-memory": "3 GiB",
    "4x4-reach32": "3 h, 12 GiB",
}

# Time limits for a coordinator to print its address, and for workers to register.
READY_SECONDS = 30
REGISTERED_SECONDS = 2


def fail(text):
    sys.exit(f"error: {text}")


def wall_and_peak(command):
    begun = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        fail(f"{' '.join(command)} failed (status {status}); run it by hand to see why")
    return time.monotonic() - begun, usage.ru_maxrss * 1024


def solve(program, folder, *options):
    run = os.path.join(folder, "run")
    shutil.rmtree(run, ignore_errors=True)
    found = wall_and_peak([program, "solve", "--run", run, "--json", *options])
    shutil.rmtree(run, ignore_errors=True)
    return found


@contextlib.contextmanager
def started(command, output):
    with open(output, "w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def listening(output):
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        with open(output) as out:
            if found := re.search(r"listening on (\S+)", out.read()):
                return found.group(1)
        time.sleep(0.05)
    fail("the coordinator does not print its address")


def cluster(program, folder, workers, *options):
    """Wall time from submitting a job to its end."""
    store, output = os.path.join(folder, "store"), os.path.join(folder, "coordinator.out")
    shutil.rmtree(store, ignore_errors=True)
    os.mkdir(store)
    with contextlib.ExitStack() as processes:
        coordinator = [program, "coordinator", "--store", store, "--listen", "127.0.0.1:0"]
        processes.enter_context(started(coordinator, output))
        url = listening(output)
        for _ in range(workers):
            cache = os.path.join(folder, "cache")
            worker = [program, "worker", "--coordinator", url, "--threads", "1", "--memory", "4GiB", "--cache", cache]
            processes.enter_context(started(worker, os.devnull))
        time.sleep(REGISTERED_SECONDS)
        begun = time.monotonic()
        submit = [program, "submit", "--coordinator", url, *options]
        job = subprocess.run(submit, capture_output=True, text=True, check=True).stdout.strip()
        watch = [program, "status", "--coordinator", url, job, "--watch"]
        subprocess.run(watch, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        seconds = time.monotonic() - begun
    shutil.rmtree(store, ignore_errors=True)
    return seconds


def ratio(above, below):
    return above / below, f"{above / below:.2f}× ({above:.2f} and {below:.2f} s)"


def measure(row, program, folder, options):
    """A number for medians, and its text."""
    most = str(options.most_threads)
    match row:
        case "3x3-yardstick":
            if not options.yardstick:
                fail("3x3-yardstick: expected --yardstick PATH of the other solver")
            other, _ = wall_and_peak([options.yardstick, "3", "3"])
            return ratio(other, solve(program, folder, "--board", "3x3", "--threads", "2")[0])
        case "threads":
            one, _ = solve(program, folder, "--board", "5x2", "--threads", "1")
            found, text = ratio(one, solve(program, folder, "--board", "5x2", "--threads", most)[0])
            return found, f"{text}, 1 to {most}"
        case "3x3-workers":
            two = cluster(program, folder, 2, "--board", "3x3")
            return ratio(two, solve(program, folder, "--board", "3x3", "--threads", "2")[0])
        case "5x2-workers":
            one = cluster(program, folder, 1, "--board", "5x2")
            return ratio(one, cluster(program, folder, 2, "--board", "5x2"))
        case "least-memory":
            # The program refuses a limit that is too small, and prints the smallest possible one.
            refused = [program, "solve", "--board", "4x3", "--threads", "2", "--memory", "1MiB"]
            said = subprocess.run([*refused, "--run", os.path.join(folder, "none")], capture_output=True, text=True).stderr
            found = re.search(r"needs at least ([\d.]+) ?([MG])iB", said) or fail(f"least-memory: expected the smallest limit, found {said}")
            gib = float(found.group(1)) / {"M": 1024, "G": 1}[found.group(2)]
            return gib, f"{gib:.1f} GiB"
        case "4x4-reach32":
            limits = ["--memory", "8GiB", "--threads", "2"]
            seconds, peak = solve(program, folder, "--board", "4x4", "--objective", "reach:32", *limits)
            return seconds, f"{seconds / 60:.1f} min, {peak / 2**30:.1f} GiB"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", help="the program to compare with")
    parser.add_argument("new", help="the program of this checkout")
    parser.add_argument("--rows", nargs="+", default=["least-memory", "3x3-workers"], choices=[*ASKED, "all"])
    parser.add_argument("--rounds", type=int, default=1, help="number of measurements of each; the table shows the median")
    parser.add_argument("--yardstick", help="the other solver of 3x3")
    parser.add_argument("--most-threads", type=int, default=min(4, os.cpu_count() or 1))
    options = parser.parse_args()
    print("| What | Asked | Old | New |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for row in list(ASKED) if "all" in options.rows else options.rows:
            found = {program: [] for program in (options.old, options.new)}
            for _ in range(options.rounds):
                for program, measured in found.items():
                    measured.append(measure(row, program, folder, options))
            texts = [sorted(measured)[(len(measured) - 1) // 2][1] for measured in found.values()]
            print(f"| {row} | {ASKED[row]} | {texts[0]} | {texts[-1]} |", flush=True)


if __name__ == "__main__":
    main()
