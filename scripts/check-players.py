#!/usr/bin/env python3
"""Published numbers of players on 4x4 against `exact2048 play`.

usage: scripts/check-players.py [PROGRAM]    default: target/release/exact2048; about twenty minutes of a core

Fails where random play or expectimax does not do what is published. The table of the paper on Monte Carlo play is
printed beside what comes out, and not required: docs/players.md says why.
"""
import json
import subprocess
import sys

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


def paper(program):
    for runs, steps, published, games in PAPER:
        player = f"win-fraction:runs={runs},steps={steps}"
        means = []
        for rules in [["--paper-rules"], []]:
            found = play(program, "--player", player, "--games", games, "--until", 2048, *rules)
            means.append(f"{found['moves'] / games:.0f}, won {found['won']['share']['share']:.0%}")
        print(f"paper   {runs} runs of {steps} steps: published {published}; {means[0]}; usual rules {means[1]}", flush=True)


program = sys.argv[1] if len(sys.argv) > 1 else "target/release/exact2048"
random_play(program)
expectimax(program)
paper(program)
sys.exit(f"{len(failures)} checks failed" if failures else 0)
