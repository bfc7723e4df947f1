"""Solving in this process: options, progress, interruptions."""

import pathlib
import signal
import subprocess
import sys
import threading
import time

import exact2048
import pytest


def test_progress_is_reported(tmp_path: pathlib.Path) -> None:
    seen: list[tuple[str, float, int, int]] = []
    run = exact2048.solve("4x2", tmp_path / "4x2", progress=lambda *report: seen.append(report), threads=1)
    assert run.states == 4_980_767
    assert {phase for phase, *_ in seen} <= {"enumerate", "back up"} and len(seen) > 1
    assert all(0 <= share <= 1 and layer % 2 == 0 for _, share, layer, _ in seen)
    # The run already exists.
    again = exact2048.solve("4x2", tmp_path / "4x2")
    assert again.fingerprint == run.fingerprint


def test_options_are_those_of_the_program(tmp_path: pathlib.Path) -> None:
    run = exact2048.solve("2x2", tmp_path / "a", objective="reach:16", spawn4="0.25", keep="all", precision=64)
    assert (run.objective, run.spawn4) == ("reach:16", "1/4")
    assert 0 < run.start_value < 1
    with pytest.raises(exact2048.UsageError, match="3y3"):
        exact2048.solve("3y3", tmp_path / "b")
    with pytest.raises(exact2048.UsageError, match="expected precision 32 or 64, found 16"):
        exact2048.solve("2x2", tmp_path / "b", precision=16)
    with pytest.raises(exact2048.UsageError, match="needs at least"):
        exact2048.solve("3x3", tmp_path / "b", memory_bytes=1 << 20)
    with pytest.raises(exact2048.UsageError, match="2x2"):
        exact2048.solve("3x2", tmp_path / "a", objective="reach:16")
    with pytest.raises(exact2048.UsageError):
        exact2048.solve("4x4", tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_a_run_keeps_its_storage_options(tmp_path: pathlib.Path) -> None:
    run = exact2048.solve("3x2", tmp_path / "run", keep="16", best_moves=True)
    again = exact2048.solve("3x2", tmp_path / "run")
    assert again.fingerprint == run.fingerprint and again.has_best_moves
    with pytest.raises(exact2048.UsageError, match="kept layers 4, found 16"):
        exact2048.solve("3x2", tmp_path / "run", keep="4")
    with pytest.raises(exact2048.UsageError, match="never converted"):
        exact2048.solve("3x2", tmp_path / "run", best_moves=False)


@pytest.mark.parametrize("threads", [0, 10**6])
def test_threads_have_the_limit_of_the_program(tmp_path: pathlib.Path, threads: int) -> None:
    with pytest.raises(exact2048.UsageError, match="expected 1 to 1024 threads"):
        exact2048.solve("2x2", tmp_path / "2x2", threads=threads)


def test_an_error_in_the_progress_function_ends_the_solve(tmp_path: pathlib.Path) -> None:
    def fail(*_: object) -> None:
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        exact2048.solve("3x3", tmp_path / "3x3", progress=fail, threads=1)
    with pytest.raises(exact2048.NotSolvedError):
        exact2048.Run(tmp_path / "3x3")
    # The run is intact, and the next call resumes it.
    assert exact2048.solve("3x3", tmp_path / "3x3").fingerprint == "ce3bed1a26919ab61a86c37f6287d2fb"


def test_an_interruption_ends_the_solve(tmp_path: pathlib.Path) -> None:
    code = f"import exact2048; exact2048.solve('5x2', {str(tmp_path / '5x2')!r}, threads=1, progress=True)"
    # A shell's background processes and their children ignore interrupts. So the child restores the default handler.
    heeds = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    solving = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, preexec_fn=heeds)
    killer = threading.Timer(120, solving.kill)
    killer.start()
    while not (tmp_path / "5x2" / "manifest.json").exists():
        assert solving.poll() is None
        time.sleep(0.05)
    time.sleep(0.5)
    solving.send_signal(signal.SIGINT)
    _, said = solving.communicate()
    killer.cancel()
    assert solving.returncode == 1 or solving.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in said


def test_bars_are_overwritten_in_terminals(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from exact2048._progress import ProgressBar

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with ProgressBar() as bar:
        bar("enumerate", 0.5, 1024, 1_000_000)
        bar("back up", 1.0, 4, 5)
    said = capsys.readouterr().err
    assert "\renumerate [============>           ]  50.0%, layer 1,024, 1,000,000 states" in said
    assert said.endswith("\n") and "100.0%, layer 4, 5 states" in said
