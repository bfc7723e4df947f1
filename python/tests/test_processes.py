"""Forks and interruptions."""

import contextlib
import os
import pathlib
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator

import exact2048
import numpy as np
import pytest
from conftest import serving

BOARD = "2 0 / 0 2 / 0 0"


def in_fork(work: Callable[[], object]) -> str:
    """Runs work in a fork of this process, ends the fork if it hangs, and returns its report."""
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        signal.alarm(60)
        try:
            said = repr(work())
        except BaseException as error:
            said = f"raised {error!r}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return said if status == 0 else f"ended with {status}"


def test_forks_ask_servers(run: exact2048.Run, server: str) -> None:
    client = exact2048.Client(server)
    asked = client.value(BOARD)
    assert in_fork(lambda: client.value(BOARD)) == repr(asked)
    assert in_fork(lambda: in_fork(lambda: client.value(BOARD))) == repr(repr(asked))
    held = [exact2048.Client(server)]
    held[0].value(BOARD)
    assert in_fork(held.clear) == "None"
    assert client.value(BOARD) == asked == run.value(BOARD)


def test_forks_report_a_stopped_server(run: exact2048.Run, program: str) -> None:
    with serving(program, run) as (url, process):
        client = exact2048.Client(url)
        process.terminate()
        process.communicate(timeout=60)
        assert in_fork(lambda: client.value(BOARD)).startswith("raised ServerError")


def test_forks_ask_runs(tmp_path: pathlib.Path) -> None:
    run = exact2048.solve("4x2", tmp_path / "4x2")
    games = exact2048.Games("4x2", 4000)
    games.reset(list(range(4000)))
    for step in range(60):
        games.step(np.full(4000, step % 4))
    # With this many boards, threads share the work.
    boards = games.packed()
    actions = run.action_values(boards)
    ask = lambda run: np.array_equal(run.action_values(boards), actions, equal_nan=True)
    assert in_fork(lambda: ask(run)) == "True"
    assert in_fork(lambda: ask(exact2048.Run(run.path))) == "True"
    assert in_fork(lambda: ask(exact2048.solve("4x2", run.path))) == "True"


@contextlib.contextmanager
def signalling() -> Iterator[list[int]]:
    """Sends three signals, each after the previous one was handled. The third signal is an interruption."""
    handled, seen, over = threading.Event(), [], threading.Event()

    def handle(number: int, _: object) -> None:
        seen.append(number)
        handled.set()
        if len(seen) == 3:
            raise KeyboardInterrupt

    def send() -> None:
        while len(seen) < 3 and not over.is_set():
            os.kill(os.getpid(), signal.SIGUSR1)
            handled.wait()
            handled.clear()

    before = signal.signal(signal.SIGUSR1, handle)
    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield seen
    finally:
        over.set()
        handled.set()
        sender.join()
        signal.signal(signal.SIGUSR1, before)


def test_interruptions_end_long_answers(program: str, tmp_path: pathlib.Path) -> None:
    job = ["--board", "3x3", "--keep", "starts", "--run", tmp_path / "run"]
    subprocess.run([program, "solve", *job], check=True, capture_output=True)
    run = exact2048.Run(tmp_path / "run")
    # The run stores boards of two tiles. From this board, nearly all states follow.
    board = "4 4 2 / 0 0 0 / 0 0 0"
    packed = np.array([exact2048.Board(board).packed] * 2, dtype=np.uint64)
    for ask in [lambda: run.evaluate(board), lambda: run.values(packed)]:
        with signalling() as seen, pytest.raises(KeyboardInterrupt):
            ask()
        assert len(seen) == 3
