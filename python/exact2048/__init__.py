"""Exact values and best moves of 2048 on small boards, and environments for learning.

    import exact2048

    run = exact2048.solve("3x3", "runs/3x3", progress=True)
    run.value("64 8 2 / 16 4 0 / 2 0 0")

A board is a text, a `Board`, a packed number, or an array of exponents (uint8 [R, C]). Many boards are an array of
exponents (uint8 [N, R, C]) or of packed numbers (uint64 [N]). The numbers of moves are 0 left, 1 right, 2 up, 3 down.

`exact2048.gym` has environments for Gymnasium. After an import of this package, `gymnasium.make("Exact2048-v0")` finds
them.
"""

from os import PathLike

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
from ._register import register_where_installed

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

register_where_installed()


def solve(
    board: str,
    run: str | PathLike[str],
    *,
    objective: str = "score",
    spawn4: str = "0.1",
    discount: str = "1",
    spawner: str = "random",
    keep: str | None = None,
    precision: int | None = None,
    best_moves: bool | None = None,
    value_step: float | None = None,
    threads: int | None = None,
    memory_bytes: int | None = None,
    progress: bool | ProgressCall | None = None,
    position: str | None = None,
) -> Run:
    """Solve a board in this process, and open the run.

    If a run of the same job exists, the call resumes the run, or opens it if it is finished. After an interruption (Ctrl-C,
    or the stop button of a notebook), the same call resumes the run.

    board: rows and columns, "3x3".
    run: a folder, or a prefix of a store, "s3://bucket/3x3".
    objective: "score", "reach:TILE" or "lose:TILE".
    spawn4: the probability that a spawned tile is a 4.
    discount: factor by which each further move reduces the value of a win.
    spawner: "random" or "worst".
    keep: the layers to store: "4" for two in every four, "all", "starts". None: as in the existing run, or "4".
    precision: bits of a value, 32 or 64. None: as in the existing run, or 32.
    best_moves: whether to store the best move of every state. None: as in the existing run, or False.
    value_step: round stored values to multiples of this number. None: as in the existing run, or not at all.
    threads: number of threads. None: all threads of the machine.
    memory_bytes: memory limit. None: half of the machine's memory.
    progress: True for a bar in a terminal or a notebook, or a function of phase, completed share, layer and state count.
    position: a board at which the run begins, "64 8 2 / 16 4 0 / 2 0 0". None: at the starts of games.
    """

    def call(progress: ProgressCall | None) -> Run:
        return _solve(
            board,
            run,
            objective=objective,
            spawn4=spawn4,
            discount=discount,
            spawner=spawner,
            keep=keep,
            precision=precision,
            best_moves=best_moves,
            value_step=value_step,
            threads=threads,
            memory_bytes=memory_bytes,
            progress=progress,
            position=position,
        )

    if progress is True:
        with ProgressBar() as bar:
            return call(bar)
    return call(progress or None)
