#!/usr/bin/env python3
"""The table of players in docs/players.md: what each is worth on 3x3, and what it loses.

usage: scripts/players-table.py RUN [PROGRAM] [OPTION...]    default: target/release/exact2048

RUN is a 3x3 run that is solved for the score; options are passed on to evaluate, for example --threads 2. Takes about ten
minutes on four free cores, and up to 3 GiB of memory. Times go to stderr.
"""
import json
import subprocess
import sys

# Players, and games where they are sampled: those that draw lots, and those that would take hours.
PLAYERS = [
    ("random", None),
    ("corner", None),
    ("greedy", None),
    ("win-fraction", 500),
    ("monte-carlo:runs=10", 500),
    ("linear-paths", None),
    ("monte-carlo", 500),
    ("linear-paths:paths=2", 500),
    ("minimax", 500),
    ("expectimax:depth=1", None),
    ("expectimax", 500),
    ("perfect", None),
]
TILES = [128, 256, 512]


def evaluated(program, run, player, games, options):
    command = [program, "evaluate", "--run", run, "--player", player, "--json", *options]
    if games:
        command += ["--games", str(games)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def percent(share):
    return f"{100 * share:.1f}%" if share >= 0.0005 or share == 0 else f"{100 * share:.0e}%"


def row(found):
    exact = found.get("exact")
    part = exact or found["sampled"]
    if exact:
        worth = f"{part['value']:,.6f}"
        boards = f"{part['boards']:,}" + ("" if exact["up_to_symmetry"] else "*")
    else:
        worth = f"{part['value']:,.0f} ± {part['half_width']:,.0f}"
        boards = f"{part['games']:,} games"
    reached = {}
    for tile in part["tiles"]:
        share = tile["reached"]
        reached[tile["tile"]] = share if exact else share["share"]
    losses = found["losses"]["all"]
    cells = [
        f"`{found['player']}`",
        worth,
        percent(part["value"] / found["perfect"]["value"]),
        f"{part['moves']:,.1f}",
        percent(losses["share_best"]),
        f"{losses['mean_loss']:,.2f}",
        *(percent(reached.get(tile, 0)) for tile in TILES),
        boards,
    ]
    return "| " + " | ".join(cells) + " |"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    run, program = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "target/release/exact2048"
    header = ["Player", "Worth", "Of perfect", "Moves", "Best moves", "Loss a move", *map(str, TILES), "Boards"]
    print("| " + " | ".join(header) + " |")
    print("|---|" + "--:|" * (len(header) - 1))
    for player, games in PLAYERS:
        found = evaluated(program, run, player, games, sys.argv[3:])
        print(f"{player}: {found['seconds']:.1f} s", file=sys.stderr)
        print(row(found), flush=True)


main()
