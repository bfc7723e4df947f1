"""Values and best moves of 2048 on small boards, exactly, and environments to learn on.

    import exact2048

    run = exact2048.solve("3x3", "runs/3x3", progress=True)
    run.value("64 8 2 / 16 4 0 / 2 0 0")

Boards are given as text, as `Board`, as exponents (uint8 [R, C], many as [N, R, C]) or packed (uint64 [N]). Moves are
numbered 0 left, 1 right, 2 up, 3 down. `exact2048.gym` has environments for Gymnasium.
"""

from os import PathLike
from typing import Any

from ._exact2048 import (
    Board,
    BoardError,
    Client,
    Exact2048Error,
    Games,
    NotSolvedError,
    Run,
    ServerError,
    UnreachableError,
    UsageError,
    __VERSION__ as __version__,
    solve as _solve,
)
from ._progress import ProgressBar, ProgressCall

MOVES = ("left", "right", "up", "down")
"""The moves, by number."""

__all__ = [
    "MOVES",
    "Board",
    "BoardError",
    "Client",
    "Exact2048Error",
    "Games",
    "NotSolvedError",
    "Run",
    "ServerError",
    "UnreachableError",
    "UsageError",
    "__version__",
    "solve",
]


def solve(
    board: str,
    run: str | PathLike[str],
    *,
    progress: bool | ProgressCall | None = None,
    **options: Any,
) -> Run:
    """Solve a board in this process, and open the run.

    A run that is there is resumed if it is of the same job, and opened if it is finished. An interruption (Ctrl-C, or
    that of a notebook) leaves a run that the same call resumes.

    board: rows and columns, "3x3".
    run: a folder, or a prefix of a store, "s3://bucket/3x3".
    progress: True for a bar, in a terminal or a notebook; or a function of phase, part of it, layer and states.

    Options, as those of the program of the same name: objective ("score", "reach:TILE", "lose:TILE"), spawn4 ("0.1"),
    discount ("1"), spawner ("random", "worst"), keep ("4", "all", "starts"), precision (32, 64), best_moves (False),
    threads (all), memory_bytes (half of what there is).
    """
    if progress is True:
        with ProgressBar() as bar:
            return _solve(board, run, progress=bar, **options)
    return _solve(board, run, progress=progress or None, **options)
