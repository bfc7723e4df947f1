#!/usr/bin/env python3
"""Compares published numbers of players on 4x4 with `exact2048 play`.

usage: scripts/check-players.py [PROGRAM] [CHECK...]    default: target/release/exact2048, and all checks

The checks are random, expectimax and paper; together they take about an hour of a core. The script fails if players differ
from the published numbers. docs/players.md explains the reading of the table in the paper on Monte Carlo play.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

# Five million random games (math.stackexchange.com, "probability that random moves in the game 2048 will win"): games by
# their largest tile, and the mean largest tile.
RANDOM = {16: 13_300, 32: 338_969, 64: 1_872_573}
RANDOM_GAMES = 5_000_000
RANDOM_MEAN_LARGEST = 107.32

# Runs and steps, mean steps of a game, number of games.
PAPER = [
    (20, 10, 430, 67),
    (30, 15, 565, 56),
    (40, 20, 707, 60),
    (50, 25, 798, 42),
    (60, 30, 845, 26),
    (80, 40, 886, 20),
    (90, 45, 934, 20),
    (120, 60, 987, 24),
]

failures = []


def play(program, *options):
    command = [program, "play", "--board", "4x4", "--json", *map(str, options)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def check(what, fine):
    print(("ok      " if fine else "WRONG   ") + what, flush=True)
    if not fine:
        failures.append(what)


def random_play(program):
    games = 500_000
    found = play(program, "--player", "random", "--games", games)
    reached = {tile["tile"]: tile["reached"]["share"] for tile in found["tiles"]}
    largest = {tile: share - reached.get(2 * tile, 0) for tile, share in reached.items()}
    for tile, published in RANDOM.items():
        share, expected = largest[tile], published / RANDOM_GAMES
        # Four standard errors of the difference of both samples.
        error = 4 * (expected * (1 - expected) * (1 / games + 1 / RANDOM_GAMES)) ** 0.5
        what = f"random: largest tile {tile} in {share:.4%}, published {expected:.4%} (±{error:.4%})"
        check(what, abs(share - expected) <= error)
    mean = sum(tile * share for tile, share in largest.items())
    # The largest tile's standard deviation is about 54.
    error = 4 * 54 * (1 / games + 1 / RANDOM_GAMES) ** 0.5 + 0.005
    what = f"random: mean largest tile {mean:.2f}, published {RANDOM_MEAN_LARGEST} (±{error:.2f})"
    check(what, abs(mean - RANDOM_MEAN_LARGEST) <= error)


def expectimax(program):
    found = play(program, "--player", "expectimax", "--games", 100, "--until", 2048)
    won = found["won"]["share"]["games"]
    check(f"expectimax: {won} of 100 games reach 2048", won == 100)


def steps_of(program, player, games, *options):
    """The number of steps of each game."""
    with tempfile.TemporaryDirectory() as folder:
        record = os.path.join(folder, "games.jsonl")
        play(program, "--player", player, "--games", games, "--record", record, *options)
        with open(record) as lines:
            found = [json.loads(line) for line in lines]
    return [len(game["moves"]) for game in found]


def paper(program):
    for runs, steps, published, games in PAPER:
        player = f"win-fraction:runs={runs},steps={steps}"
        lengths = steps_of(program, player + ",count=steps", games, "--paper-rules")
        mean = statistics.mean(lengths)
        # Three standard errors of the difference of two such samples.
        error = 3 * statistics.stdev(lengths) * (2 / games) ** 0.5
        what = f"paper: {runs} runs of {steps} steps: {mean:.0f} steps, published {published} (±{error:.0f})"
        check(what, abs(mean - published) <= error)
        others = [("count=games", ["--paper-rules"]), ("count=steps", []), ("count=games", [])]
        means = [statistics.mean(steps_of(program, f"{player},{count}", games, *rules)) for count, rules in others]
        texts = (f"{' '.join([count, *rules])} {mean:.0f}" for (count, rules), mean in zip(others, means))
        print("        otherwise: " + "; ".join(texts), flush=True)


def main():
    checks = {"random": random_play, "expectimax": expectimax, "paper": paper}
    program = sys.argv[1] if len(sys.argv) > 1 else "target/release/exact2048"
    wanted = sys.argv[2:] or list(checks)
    if any(name not in checks for name in wanted):
        sys.exit(__doc__)
    for name in wanted:
        checks[name](program)
    sys.exit(f"{len(failures)} checks failed" if failures else 0)


main()
