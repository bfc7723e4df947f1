"""A progress bar for a solve, in a terminal or a notebook."""

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

ProgressCall = Callable[[str, float, int, int], object]
"""Function of the phase, the completed share of the phase, the layer, and the number of states so far."""

WIDTH = 24


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"


class ProgressBar:
    """A progress bar in a single line. Each progress report overwrites the line."""

    def __init__(self) -> None:
        self._shown: Any = None
        self._length = 0
        self._notebook = _in_notebook()

    def __enter__(self) -> "ProgressBar":
        return self

    def __call__(self, phase: str, share: float, layer: int, states: int) -> None:
        full = int(share * WIDTH)
        bar = "=" * full + (">" if full < WIDTH else "")
        self._show(f"{phase:<9} [{bar:<{WIDTH}}] {share:6.1%}, layer {layer:,}, {states:,} states")

    def _show(self, line: str) -> None:
        if self._notebook:
            from IPython.display import display

            text = {"text/plain": line}
            if self._shown is None:
                self._shown = display(text, raw=True, display_id=True)  # type: ignore[no-untyped-call]
            else:
                self._shown.update(text, raw=True)
        elif sys.stderr.isatty():
            print("\r" + line.ljust(self._length), end="", file=sys.stderr, flush=True)
            self._length = len(line)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if not self._notebook and self._length:
            print(file=sys.stderr)
