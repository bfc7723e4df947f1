"""Runs and servers: they read boards in every spelling, and give the same answers as the program."""

import copy
import json
import math
import pathlib
import os
import pickle
import subprocess
import threading

import exact2048
import numpy as np
import pytest
from conftest import serving
from exact2048 import Board, BoardError

MOVES = exact2048.MOVES


def played(count: int, size: str = "3x2", seed: int = 1) -> np.ndarray:
    """Packed boards that games reach."""
    games = exact2048.Games(size, 64)
    games.reset(list(range(seed, seed + 64)))
    draw, found = np.random.default_rng(seed), []
    while sum(map(len, found)) < count:
        found.append(games.packed())
        games.step(draw.integers(0, 4, 64))
    return np.concatenate(found)[:count]


def exponents(packed: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    cells = shape[0] * shape[1]
    shifts = np.arange(cells, dtype=np.uint64) * np.uint64(4)
    return (packed[:, None] >> shifts & np.uint64(15)).astype(np.uint8).reshape(-1, *shape)


def queried(program: str, path: str, boards: np.ndarray, size: str) -> list[dict]:
    text = "\n".join(str(Board(int(board), size)) for board in boards) + "\n"
    args = [program, "query", "--run", path, "--json", "-"]
    done = subprocess.run(args, input=text, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def check_answers(source: exact2048.Run | exact2048.Client, boards: np.ndarray, answers: list[dict]) -> None:
    assert source.values(boards).tolist() == [answer["value"] for answer in answers]
    actions = source.action_values(boards)
    assert actions.shape == (len(boards), 4) and actions.dtype == np.float64
    for row, answer in zip(actions, answers, strict=True):
        expected = [move["value"] for move in answer["moves"]]
        assert [None if np.isnan(value) else value for value in row] == expected
    best = [-1 if answer["best"] is None else MOVES.index(answer["best"]) for answer in answers]
    assert source.best(boards).dtype == np.int8
    assert source.best(boards).tolist() == best


def test_answers_are_those_of_the_program(run: exact2048.Run, program: str) -> None:
    boards = played(3000)
    check_answers(run, boards, queried(program, run.path, boards, "3x2"))


def test_servers_answer_as_runs_do(run: exact2048.Run, server: str, program: str) -> None:
    client = exact2048.Client(server)
    boards = played(3000)
    check_answers(client, boards, queried(program, run.path, boards, "3x2"))
    assert (client.board, client.shape, client.objective) == ("3x2", (3, 2), "score")
    assert (client.states, client.fingerprint) == (run.states, run.fingerprint)
    assert repr(client) == f'<Client "{server}": 3x2 score, 21752 states>'
    board = "2 0 / 0 2 / 0 0"
    assert client.value(board) == run.value(board) and client.best(board) == run.best(board)
    assert client.action_values(board).tolist() == run.action_values(board).tolist()
    unreached = np.array([boards[0], 0x999999], dtype=np.uint64)
    assert np.isnan(client.values(unreached)).tolist() == [False, True]
    with pytest.raises(exact2048.UnreachableError) as of_client:
        client.value("512 512 / 512 512 / 512 512")
    with pytest.raises(exact2048.UnreachableError) as of_run:
        run.value("512 512 / 512 512 / 512 512")
    assert str(of_client.value) == str(of_run.value)


def test_boards_are_read_in_every_spelling(run: exact2048.Run) -> None:
    boards = played(500)
    values = run.values(boards)
    shaped = exponents(boards, (3, 2))
    assert values.dtype == np.float64 and (run.values(shaped) == values).all()
    # Any layout in memory.
    assert (run.values(np.asfortranarray(shaped)) == values).all()
    assert (run.values(boards[::-1])[::-1] == values).all()
    assert (run.values(shaped[::2]) == values[::2]).all()
    for packed, cells, value in zip(boards[:50], shaped[:50], values[:50], strict=True):
        board = Board(int(packed), "3x2")
        for spelling in [board, str(board), int(packed), cells, Board(cells), Board(str(board))]:
            found = run.value(spelling)
            assert type(found) is float and found == value
        assert (board.exponents == cells).all() and board.packed == packed
        assert (board.tiles == np.where(cells == 0, 0, 1 << cells.astype(np.uint32))).all()
        assert board.layer == board.tiles.sum() and run.value(board.canonical) == value
        assert pickle.loads(pickle.dumps(board)) == board and len({board, Board(str(board))}) == 1
    assert run.values(np.empty(0, dtype=np.uint64)).shape == (0,)
    assert run.action_values(np.empty((0, 3, 2), dtype=np.uint8)).shape == (0, 4)


def test_boards_have_properties() -> None:
    board = Board("2 2 0 / 0 4 0 / 0 0 .")
    assert str(board) == "2 2 0 / 0 4 0 / 0 0 0" and repr(board) == f'Board("{board}")' and eval(repr(board)) == board
    assert (board.size, board.shape, board.layer) == ("3x3", (3, 3), 8)
    assert board.legal_moves == ["left", "right", "down"]
    assert board.after("left") == (Board("4 0 0 / 4 0 0 / 0 0 0"), 4)
    assert Board("2 4 / 4 2").after("up") is None
    largest = Board("32768 32768 / 0 0")
    assert (largest.after("left"), largest.legal_moves) == (None, ["down"])
    assert board._repr_html_().count("<td") == 9 and ">4</td>" in board._repr_html_()
    with pytest.raises(exact2048.UsageError, match="left, right, up or down, found north"):
        board.after("north")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.zeros((4, 3, 3), np.uint8), ["uint8 [3, 2]", "[N, 3, 2]", "uint64 [N]", "uint8 [4, 3, 3]"]),
        (np.zeros((3, 2), np.float64), ["found an array of float64 [3, 2]"]),
        (np.zeros((2, 2), np.uint64), ["found an array of uint64 [2, 2]"]),
        (np.zeros(5, np.int64), ["found an array of int64 [5]"]),
        (np.zeros(6, np.uint8), ["found an array of uint8 [6]"]),
        (np.full((3, 2), 64, np.uint8), ["exponents", "15", "found 64"]),
        (np.array([1 << 24], np.uint64), ["packed board of 3x2", "0x1000000"]),
        (1 << 24, ["packed board of 3x2"]),
        (Board("2 2 / 0 0"), ["expected a board of 3x2, found one of 2x2"]),
        ("2 2 / 0 0", ["2 rows in", "expected 3 rows"]),
        ("2 3 / 0 0 / 0 0", ['"3" is not a tile']),
        (2.5, ["found float"]),
        ([[1, 1], [0, 0], [0, 0]], ["found list"]),
        (None, ["found NoneType"]),
        (-1, ["found int"]),
        (np.ma.masked_array(np.zeros((3, 2), np.uint8), mask=True), ["without a mask"]),
        (np.ma.masked_array(np.zeros(4, np.uint64)), ["without a mask", "masked array"]),
    ],
)
def test_invalid_boards_are_refused(run: exact2048.Run, given: object, words: list[str]) -> None:
    for ask in [run.value, run.values, run.action_values, run.best, run.evaluate]:
        with pytest.raises(BoardError) as refused:
            ask(given)  # type: ignore[operator]
        assert all(word in str(refused.value) for word in words), str(refused.value)


def test_one_board_and_many_are_distinguished(run: exact2048.Run) -> None:
    with pytest.raises(BoardError, match="one board, found an array of 2"):
        run.value(np.array([17, 17], dtype=np.uint64))  # type: ignore[arg-type]
    with pytest.raises(BoardError, match="array of boards, found one board"):
        run.values("2 2 / 0 0 / 0 0")  # type: ignore[arg-type]


def test_runs_are_copied_and_sent_to_other_processes(run: exact2048.Run) -> None:
    assert copy.deepcopy(run) is run
    again = pickle.loads(pickle.dumps(run))
    assert again is not run and again.fingerprint == run.fingerprint
    by_url = exact2048.Run(pathlib.Path(run.path).resolve().as_uri())
    assert pickle.loads(pickle.dumps(by_url)).fingerprint == run.fingerprint
    small = exact2048.Run(run.path, cache_bytes=1 << 20, memory_bytes=1 << 21)
    opened, (place,) = small.__reduce__()
    assert opened.keywords == {"cache_bytes": 1 << 20, "memory_bytes": 1 << 21}
    assert os.path.isabs(place) and os.path.samefile(place, run.path)


def test_formations_are_asked(program: str, tmp_path: pathlib.Path) -> None:
    solved = exact2048.solve("2x3:..x/...", tmp_path / "run", objective="reach:16")
    board = Board("2 4 x / 0 2 0")
    assert (board.size, str(board), board.layer) == ("2x3:..x/...", "2 4 x / 0 2 0", 8)
    assert board.packed == 1 | 2 << 4 | 1 << 16 and "x" in board._repr_html_()
    assert Board(board.packed, size=board.size) == board == Board(board.exponents, size=board.size)
    assert board.legal_moves == ["left", "right"]
    answer = json.loads(subprocess.check_output([program, "query", "--run", solved.path, "--json", str(board)]))
    assert solved.value(board) == answer["value"] == solved.value("2 4 X / . 2 .")
    with serving(program, solved) as (url, _):
        client = exact2048.Client(url)
        assert (client.board, client.value(board)) == (solved.board, answer["value"])
        assert client.rules == solved.rules
    for wrong in ["2 4 0 / 0 2 0", "2 4 # / 0 2 0", 1 << 8, np.full((2, 3), 1, np.uint8)]:
        with pytest.raises(BoardError, match="stone|locks|cell 3"):
            solved.value(wrong)


def test_positions_of_a_real_game_are_asked(program: str, tmp_path: pathlib.Path) -> None:
    solved = exact2048.solve("3x3:.../..x/.xx", tmp_path / "run", objective="reach:32")
    board = Board("2 0 4 / 0 2 x / 8 x x")
    real = "8 0 2 / 32 2 0 / 128 64 4"
    turned = {"left": "up", "right": "down", "up": "right", "down": "left"}
    evaluation = solved.evaluate(board)
    shown = solved.evaluate(real)
    assert (str(shown["board"]), str(shown["canonical"])) == (real, str(evaluation["canonical"]))
    assert shown["value"] == evaluation["value"]
    assert shown["moves"].keys() == {turned[name] for name in evaluation["moves"]}
    for name, move in evaluation["moves"].items():
        assert shown["moves"][turned[name]]["value"] == move["value"]
        assert shown["moves"][turned[name]]["after"].size == "3x3"
    with serving(program, solved) as (url, _):
        for source in (solved, exact2048.Client(url)):
            assert source.value(real) == source.value(board)
            assert source.best(real) == shown["best"] == turned[source.best(board)]
            actions = source.action_values(real)
            for name, value in zip(("left", "right", "up", "down"), actions, strict=True):
                legal = shown["moves"].get(name)
                assert math.isnan(value) if legal is None else value == legal["value"]
            with pytest.raises(BoardError, match="found them elsewhere"):
                source.value("8 32 2 / 0 2 0 / 128 64 4")


def test_unreachable_boards_have_no_value(run: exact2048.Run) -> None:
    boards = np.array([0x11, 0x999999, 0], dtype=np.uint64)
    assert np.isnan(run.values(boards)).tolist() == [False, True, True]
    assert np.isnan(run.action_values(boards)).all(axis=1).tolist() == [False, True, True]
    assert run.best(boards).tolist()[1:] == [-2, -2]
    for ask in [run.value, run.action_values, run.best, run.evaluate]:
        with pytest.raises(exact2048.UnreachableError, match="512 512 / 512 512 / 512 512 is not reachable in this run"):
            ask("512 512 / 512 512 / 512 512")


def test_evaluations_match_queries(run: exact2048.Run, program: str) -> None:
    boards = played(200)
    for packed, expected in zip(boards, queried(program, run.path, boards, "3x2"), strict=True):
        found = run.evaluate(int(packed))
        for name in ["layer", "value", "error_bound", "best"]:
            assert found[name] == expected[name]  # type: ignore[literal-required]
        assert str(found["canonical"]) == expected["canonical"] and str(found["board"]) == expected["board"]
        legal = {move["move"]: move for move in expected["moves"] if move["legal"]}
        assert found["moves"].keys() == legal.keys()
        for name, move in legal.items():
            assert str(found["moves"][name]["after"]) == move["afterstate"]
            assert found["moves"][name]["score"] == move["score"]
            assert found["moves"][name]["is_best"] == move["best"]


def test_values_are_computed_from_few_stored_layers(program: str, tmp_path: pathlib.Path) -> None:
    job = ["--board", "3x3", "--objective", "reach:512", "--json"]
    for name, options in [("all", ["--keep", "all"]), ("few", ["--keep", "starts", "--disk", "20MB"])]:
        subprocess.run([program, "solve", *job, *options, "--run", tmp_path / name], check=True, capture_output=True)
    boards = ["2 2 0 / 4 0 0 / 0 0 0", "64 8 2 / 2 0 0 / 0 0 0"]
    every = exact2048.Run(tmp_path / "all")
    # All states of the unstored layers, as blocks, take less memory than the cone of a board.
    few = exact2048.Run(tmp_path / "few", memory_bytes=120 << 20)
    assert [few.value(board) for board in boards] == [every.value(board) for board in boards]
    known = [few.evaluate(board)["known_reachable"] for board in boards]
    assert known == [True, False] and every.evaluate(boards[1])["known_reachable"]


def test_runs_of_best_moves_have_both(run: exact2048.Run, best_moves: exact2048.Run) -> None:
    boards = played(1000)
    assert best_moves.has_best_moves and not run.has_best_moves
    assert (best_moves.values(boards) == run.values(boards)).all()
    actions, best = run.action_values(boards), best_moves.best(boards)
    over = np.isnan(actions).all(axis=1)
    assert (best[over] == -1).all()
    alive = actions[~over]
    assert (alive[np.arange(len(alive)), best[~over]] == np.nanmax(alive, axis=1)).all()


def test_threads_ask_at_once(run: exact2048.Run) -> None:
    boards = played(4000)
    expected, found = run.values(boards), {}

    def ask(number: int) -> None:
        found[number] = run.values(boards)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(found) == 4 and all((values == expected).all() for values in found.values())


def test_runs_have_properties(run: exact2048.Run, folder: pathlib.Path) -> None:
    assert (run.board, run.shape, run.objective, run.spawn4) == ("3x2", (3, 2), "score", "1/10")
    assert (run.states, run.path) == (21752, str(folder / "3x2"))
    assert abs(run.start_value - 480.26) < 0.01 and 0 < run.start_error_bound < 1e-3
    assert len(run.fingerprint) == 32 and repr(run).endswith("3x2 score, 21752 states, worth 480.258 at the start>")


def test_locations_without_a_run_are_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(exact2048.Exact2048Error, match="no/such/run"):
        exact2048.Run("/no/such/run")
    with pytest.raises(exact2048.UsageError, match="ftp"):
        exact2048.Run("ftp://host/run")
    with pytest.raises(exact2048.Exact2048Error):
        exact2048.Run(tmp_path)


def test_missing_servers_are_reported(server: str) -> None:
    with pytest.raises(exact2048.ServerError, match="127.0.0.1:1"):
        exact2048.Client("http://127.0.0.1:1")
    with pytest.raises(exact2048.ServerError, match="nonsense"):
        exact2048.Client("nonsense")
    with pytest.raises(exact2048.UsageError, match="token"):
        exact2048.Client(server, token="no\ntoken")


def test_stopped_servers_are_reported(run: exact2048.Run, program: str) -> None:
    board = "2 0 / 0 2 / 0 0"
    with serving(program, run) as (url, process):
        client = exact2048.Client(url)
        assert client.value(board) == run.value(board)
        process.terminate()
        process.communicate(timeout=60)
        with pytest.raises(exact2048.ServerError, match="query server"):
            client.value(board)
