#!/usr/bin/env python3
"""The tables of players in docs/results/players.md: the results of each on 3x3, and the losses of its moves.

usage: scripts/players-table.py RUN [PROGRAM] [OPTION...]    default: target/release/exact2048

Call it in the repository's folder. RUN is a 3x3 run solved for the score, best with --keep 1/1, so that every value is
looked up. Options are passed to evaluate, for example --threads 2. Takes about ten minutes on four free cores, and up to
3 GiB of memory. Times go to stderr.
"""
import json
import subprocess
import sys

# Players, with the number of games if they are sampled: those that draw lots, and those that would take hours.
PLAYERS = [
    ("random", None),
    ("cmd:scripts/example-player.py", 500),
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
# Groups of losses: by these largest tiles, and by layers from one of these tile sums to below the next.
LARGEST = [8, 16, 32, 64, 128, 256, 512]
LAYERS = [4, 32, 64, 128, 256, 512, 1024]


def evaluated(program, run, player, games, options):
    command = [program, "evaluate", "--run", run, "--player", player, "--json", *options]
    # Boards of any probability are counted.
    command += ["--games", str(games)] if games else ["--cutoff", "0"]
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


def table(header, rows):
    print("| " + " | ".join(header) + " |")
    print("|---|" + "--:|" * (len(header) - 1))
    for row in rows:
        print(row, flush=True)
    print()


def loss(moves, lost, best):
    """Mean loss of some moves, and the share of best moves."""
    return f"{lost / moves:,.2f}, {percent(best / moves)}" if moves else "-"


def sums(groups):
    """Numbers of moves and of best moves, and total loss, of some groups."""
    groups = [group["losses"] for group in groups]
    moves = sum(group["moves"] for group in groups)
    lost = sum(group["moves"] * group["mean_loss"] for group in groups)
    return moves, lost, sum(group["moves"] * group["share_best"] for group in groups)


def losses_by(found, key, name, ranges):
    cells = [f"`{found['player']}`"]
    for least, most in ranges:
        cells.append(loss(*sums(group for group in found["losses"][key] if least <= group[name] < most)))
    return "| " + " | ".join(cells) + " |"


def worst(found):
    position = found["losses"]["worst"][:1]
    if not position:
        return f"| `{found['player']}` | none loses | | | | | |"
    [position] = position
    values = (position["values"][direction] for direction in ("left", "right", "up", "down"))
    values = ("not legal" if value is None else f"{value:,.1f}" for value in values)
    board, times = position["board"], position["times_a_game"]
    often = "" if times is None else f", {times:.0e} times a game"
    return f"| `{found['player']}` | {board} | {' | '.join(values)} | {position['move']}{often} |"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    run, program = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "target/release/exact2048"
    all_found = []

    def rows():
        for player, games in PLAYERS:
            found = evaluated(program, run, player, games, sys.argv[3:])
            print(f"{player}: {found['seconds']:.1f} s", file=sys.stderr, flush=True)
            all_found.append(found)
            yield row(found)

    header = ["Player", "Worth", "Of perfect", "Moves", "Best moves", "Loss a move", *map(str, TILES), "Boards"]
    table(header, rows())
    by_tile = [(tile, tile + 1) for tile in LARGEST]
    table(["Player", *map(str, LARGEST)], (losses_by(found, "by_largest_tile", "tile", by_tile) for found in all_found))
    by_layer = list(zip(LAYERS, [*LAYERS[1:], 1 << 20]))
    names = [f"{least} to {most - 2}" for least, most in by_layer[:-1]] + [f"{LAYERS[-1]:,} on"]
    table(["Player", *names], (losses_by(found, "by_layer", "layer", by_layer) for found in all_found))
    table(["Player", "Board", "Left", "Right", "Up", "Down", "Made"], map(worst, all_found))


main()
