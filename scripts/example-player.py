#!/usr/bin/env python3
"""A player for `play` and `evaluate`, described in docs/players.md: the first legal move of left, down, right, up.

usage: exact2048 play --player cmd:scripts/example-player.py
"""
import sys


def slid(line):
    """A line after a move towards its first cell."""
    tiles = [tile for tile in line if tile]
    merged = []
    while tiles:
        tile = tiles.pop(0)
        if tiles and tiles[0] == tile:
            tile += tiles.pop(0)
        merged.append(tile)
    return merged + [0] * (len(line) - len(merged))


def is_legal(move, rows):
    lines = rows if move in ("left", "right") else [list(column) for column in zip(*rows)]
    lines = lines if move in ("left", "up") else [line[::-1] for line in lines]
    return any(slid(line) != line for line in lines)


for request in sys.stdin:
    word, _, rest = request.strip().partition(" ")
    if word == "move":
        board = [list(map(int, row.split())) for row in rest.split("/")]
        moves = (move for move in ("left", "down", "right", "up") if is_legal(move, board))
        print(next(moves), flush=True)
