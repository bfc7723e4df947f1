"""Fixtures of the tests: a small run, and the program that serves it."""

import contextlib
import os
import pathlib
import subprocess
from collections.abc import Iterator

import exact2048
import pytest

PROGRAM = os.environ.get("EXACT2048_PROGRAM")
"""Path of the program whose answers the tests compare with those of the package."""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def run(folder: pathlib.Path) -> exact2048.Run:
    return exact2048.solve("3x2", folder / "3x2", threads=2)


@pytest.fixture(scope="session")
def best_moves(folder: pathlib.Path) -> exact2048.Run:
    return exact2048.solve("3x2", folder / "best", best_moves=True)


@pytest.fixture(scope="session")
def program() -> str:
    if PROGRAM is None:
        pytest.skip("EXACT2048_PROGRAM does not name the program")
    return PROGRAM


@contextlib.contextmanager
def serving(program: str, run: exact2048.Run) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Serves a run at a free port. Yields the URL and the process."""
    args = [program, "serve", "--run", run.path, "--listen", "127.0.0.1:0", "--log-format", "json"]
    with subprocess.Popen(args, stderr=subprocess.PIPE, text=True) as served:
        try:
            assert served.stderr is not None
            yield next(found for line in served.stderr if (found := _url(line))), served
        finally:
            served.terminate()
            # Reads the log to its end, so the server does not write to a closed pipe.
            served.communicate(timeout=60)


@pytest.fixture(scope="session")
def server(run: exact2048.Run, program: str) -> Iterator[str]:
    with serving(program, run) as (url, _):
        yield url


def _url(line: str) -> str | None:
    """The address in a line of the log, if any."""
    at = line.find("127.0.0.1:")
    if at < 0:
        return None
    port = line[at + len("127.0.0.1:") :]
    digits = port[: next(n for n, char in enumerate(port) if not char.isdigit())]
    return f"http://127.0.0.1:{digits}"
