"""Environments: Gymnasium accepts them, and they agree with the rules and with a run."""

import subprocess
import sys
import warnings
from pathlib import Path

import exact2048
import exact2048.gym
import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env


@pytest.mark.parametrize("options", [{}, {"board": "3x2"}, {"board": "2x8"}, {"board": "3x3", "objective": "reach:64"}])
def test_gymnasium_finds_nothing_wrong(options: dict) -> None:
    env = gymnasium.make("Exact2048-v0", **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=True)


MAKES = """
assert gymnasium.make("Exact2048-v0", board="3x3").reset(seed=1)[0].shape == (3, 3)
assert gymnasium.make_vec("Exact2048-v0", num_envs=2, board="3x3").reset(seed=1)[0].shape == (2, 3, 3)
"""


@pytest.mark.parametrize(
    "code",
    [
        "import exact2048; import gymnasium" + MAKES,
        "import gymnasium; import exact2048" + MAKES,
        "import exact2048.gym; import gymnasium" + MAKES,
        "import exact2048, importlib; importlib.reload(exact2048); import gymnasium" + MAKES,
        # Other packages search for Gymnasium without importing it.
        "import exact2048, importlib.util; importlib.util.find_spec('gymnasium'); import gymnasium" + MAKES,
        "import exact2048, sys; assert not {'gymnasium', 'numpy'} & sys.modules.keys()",
        "import sys; sys.modules['gymnasium'] = None; import exact2048",
    ],
)
def test_a_fresh_process_finds_the_environment(code: str) -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_gymnasium_finds_nothing_wrong_with_a_run(run: exact2048.Run) -> None:
    check_env(gymnasium.make("Exact2048-v0", board="3x2", run=run).unwrapped, skip_render_check=True)


def test_one_game_follows_the_rules() -> None:
    env = gymnasium.make("Exact2048-v0", board="3x3", render_mode="ansi")
    draw = np.random.default_rng(3)
    seen, info = env.reset(seed=3)
    assert (seen > 0).sum() == 2 and env.unwrapped.games.board(0).layer in (4, 6, 8)
    over = False
    while not over:
        before = exact2048.Board(seen)
        legal = [name in before.legal_moves for name in exact2048.MOVES]
        assert info["action_mask"].tolist() == legal and info["action_mask"].dtype == np.int8
        action = int(draw.integers(4))
        seen, reward, over, truncated, info = env.step(action)
        after = before.after(exact2048.MOVES[action])
        if after is None:
            assert reward == 0 and not over and (seen == before.exponents).all()
        else:
            assert reward == after[1] and not truncated
            changed = seen != after[0].exponents
            assert changed.sum() == 1 and seen[changed][0] in (1, 2)
    assert exact2048.Board(seen).legal_moves == [] and not info["action_mask"].any()
    assert env.render() == str(exact2048.Board(seen)).replace(" / ", "\n")


def test_illegal_moves_without_end_truncate_the_episode(run: exact2048.Run) -> None:
    env = gymnasium.make("Exact2048-v0", board="3x2", run=run)
    board = "2 0 / 0 0 / 4 0"
    seen, before = env.reset(options={"board": board})
    for _ in range(2):
        ends = [env.step(0)[1:4] for _ in range(99)]
        assert ends == [(0.0, False, False)] * 99
        # A legal move restarts the count.
        assert env.step(1)[1:4] == (0.0, False, False)
        seen, before = env.reset(options={"board": board})
    for _ in range(99):
        env.step(0)
    after, reward, over, truncated, info = env.step(0)
    assert (reward, over, truncated, info["regret"]) == (0.0, False, True, 0.0)
    assert (after == seen).all() and info["value"] == before["value"] > 0
    # The episode remains ended until a reset.
    again, *ended, _ = env.step(1)
    assert (again == seen).all() and ended == [0.0, False, True]
    env.reset(seed=1)
    assert env.step(0)[2:4] == env.step(1)[2:4] == (False, False)


def test_many_games_are_truncated_one_by_one(run: exact2048.Run) -> None:
    envs = gymnasium.make_vec("Exact2048-v0", num_envs=2, board="3x2", run=run)
    boards = ["2 0 / 0 0 / 4 0", "0 2 / 0 0 / 0 4"]
    seen, _ = envs.reset(options={"boards": boards})
    for _ in range(99):
        *_, over, truncated, _ = envs.step(np.array([0, 1]))
        assert not over.any() and not truncated.any()
    after, _, over, truncated, info = envs.step(np.array([0, 0]))
    assert (over.tolist(), truncated.tolist()) == ([False, False], [True, False])
    assert (after[0] == seen[0]).all() and info["value"][0] > 0
    # The next step restarts the first game. The second game continues.
    other = after[1]
    after, rewards, over, truncated, info = envs.step(np.array([0, 1]))
    assert rewards[0] == info["regret"][0] == 0 and not over.any() and not truncated.any()
    assert (after[0] > 0).sum() == 2 and not (after[1] == other).all()
    # A reset restarts the count.
    for _ in range(2):
        envs.reset(options={"boards": boards})
        for _ in range(99):
            assert not envs.step(np.array([0, 1]))[3].any()


def test_wins_are_worth_one() -> None:
    env = gymnasium.make("Exact2048-v0", board="2x2", objective="reach:8")
    env.reset(options={"board": "4 4 / 0 0"})
    _, reward, over, _, info = env.step(0)
    assert (reward, over) == (1.0, True) and not info["action_mask"].any()


def test_regret_is_the_loss_of_a_move(run: exact2048.Run) -> None:
    env = gymnasium.make("Exact2048-v0", board="3x2", run=run)
    draw = np.random.default_rng(5)
    for seed in range(20):
        seen, info = env.reset(seed=seed)
        over = False
        while not over:
            before = exact2048.Board(seen)
            values, actions = run.value(before), run.action_values(before)
            assert info["value"] == values
            assert np.array_equal(info["action_values"], np.where(np.isnan(actions), -np.inf, actions))
            action = int(draw.integers(4))
            seen, _, over, _, info = env.step(action)
            expected = 0.0 if np.isnan(actions[action]) else values - actions[action]
            assert info["regret"] == expected >= 0
        assert info["value"] == 0.0
    _, info = env.reset(seed=1)
    _, _, _, _, info = env.step(exact2048.MOVES.index(run.best(env.unwrapped.games.board(0))))
    assert info["regret"] == 0.0


def test_many_games_are_as_one(run: exact2048.Run) -> None:
    envs = gymnasium.make_vec("Exact2048-v0", num_envs=16, board="3x2", run=run)
    assert isinstance(envs, exact2048.gym.Exact2048VectorEnv)
    seen, info = envs.reset(seed=7)
    assert seen in envs.observation_space and seen.shape == (16, 3, 2)
    again, _ = envs.reset(seed=7)
    assert (again == seen).all()
    other, _ = envs.reset(seed=8)
    assert (other != seen).any()
    seen, info = envs.reset(seed=list(range(16)))
    envs.action_space.seed(1)
    over, ended = np.zeros(16, dtype=bool), 0
    for _ in range(200):
        actions = envs.action_space.sample()
        before, values, of_moves = seen, info["value"], info["action_values"]
        seen, rewards, terminated, truncated, info = envs.step(actions)
        assert seen in envs.observation_space and not truncated.any()
        for game in range(16):
            if over[game]:
                # This step restarted the game.
                assert rewards[game] == 0 and not terminated[game] and (seen[game] > 0).sum() == 2
                assert info["regret"][game] == 0
                continue
            made = exact2048.Board(before[game]).after(exact2048.MOVES[actions[game]])
            assert rewards[game] == (0 if made is None else made[1])
            expected = 0.0 if made is None else values[game] - of_moves[game, actions[game]]
            assert info["regret"][game] == expected
            assert terminated[game] == (not info["action_mask"][game].any())
        over, ended = terminated, ended + terminated.sum()
    assert ended > 16


def test_locks_stay_in_games_of_a_formation(tmp_path: Path) -> None:
    board, objective = "3x3:.../..x/.xx", "reach:32"
    run = exact2048.solve(board, tmp_path / "run", objective=objective)
    envs = gymnasium.make_vec("Exact2048-v0", num_envs=8, board=board, objective=objective, run=run)
    seen, info = envs.reset(seed=1)
    won = 0.0
    for _ in range(300):
        assert info["action_mask"].any(axis=1).all() or over.any()
        assert (seen[:, [1, 2, 2], [2, 1, 2]] == 0).all() and np.isfinite(info["value"]).all()
        seen, rewards, over, _, info = envs.step(info["action_values"].argmax(axis=1))
        assert np.abs(info["regret"]).max() == 0.0
        won += rewards.sum()
    assert won > 0
    with pytest.raises(exact2048.UsageError, match="a legal move"):
        exact2048.Games("1x4:.x.x", 1)


def test_seeds_determine_games() -> None:
    def play(seed: int) -> list:
        envs = gymnasium.make_vec("Exact2048-v0", num_envs=8, board="4x4")
        seen, _ = envs.reset(seed=seed)
        results = [seen]
        for step in range(300):
            seen, rewards, *_ = envs.step(np.full(8, step % 4))
            results += [seen, rewards]
        return [part.tobytes() for part in results]

    assert play(1) == play(1) != play(2)


def test_lists_of_seeds_determine_later_resets() -> None:
    def play(seeds: list[int]) -> list:
        envs = gymnasium.make_vec("Exact2048-v0", num_envs=4, board="4x4")
        return [part.tobytes() for part in (envs.reset(seed=seeds)[0], envs.reset()[0], envs.reset()[0])]

    assert play([1, 2, 3, 4]) == play([1, 2, 3, 4]) != play([2, 2, 3, 4])
    games = exact2048.Games("3x3", 64)
    assert len({board.tobytes() for board in games.reset(None)[0]}) > 8


def test_callers_may_change_the_returned_arrays(run: exact2048.Run) -> None:
    envs = gymnasium.make_vec("Exact2048-v0", num_envs=2, board="3x2", run=run)
    _, info = envs.reset(seed=1)
    moves = info["action_values"].argmax(axis=1)
    info["action_values"][:] = 0
    info["value"][:] = 0
    *_, info = envs.step(moves)
    assert (info["regret"] == 0).all()


def test_invalid_arguments_are_refused(run: exact2048.Run) -> None:
    with pytest.raises(exact2048.UsageError, match="expected a run of 3x3, score, a 4 by 1/10, found one of 3x2, score, a 4 by 1/10"):
        exact2048.gym.Exact2048Env(board="3x3", run=run)
    with pytest.raises(exact2048.UsageError, match="expected a run of 3x2, score, a 4 by 1/2, found one of"):
        exact2048.gym.Exact2048Env(board="3x2", spawn4="0.5", run=run)
    exact2048.gym.Exact2048Env(board="3X2", spawn4="1/10", run=run)
    with pytest.raises(exact2048.UsageError, match="score or reach:TILE, found lose:16"):
        exact2048.Games("3x3", 1, objective="lose:16")
    with pytest.raises(exact2048.UsageError, match="expected actions from 0 to 3, found 4"):
        games = exact2048.Games("3x3", 1)
        games.reset([1])
        games.step(np.array([4]))
    envs = gymnasium.make_vec("Exact2048-v0", num_envs=2, board="3x2", run=run)
    envs.reset(seed=1)
    for wrong, words in [([0, 4], "actions from 0 to 3, found 4"), ([0], "expected 2 actions, found 1")]:
        with pytest.raises(exact2048.UsageError, match=words):
            envs.unwrapped.step(np.array(wrong))
    with pytest.raises(exact2048.UsageError, match='no option but "boards", found \'board\''):
        envs.reset(options={"board": "2 2 / 0 0 / 0 0"})
    with pytest.raises(exact2048.UsageError, match="with a legal move, found 2 4 / 4 2 / 2 4"):
        envs.reset(options={"boards": ["2 2 / 0 0 / 0 0", "2 4 / 4 2 / 2 4"]})
    with pytest.raises(exact2048.UsageError, match="expected 2 actions, found 3"):
        games = exact2048.Games("3x3", 2)
        games.reset([1, 2])
        games.step(np.array([0, 1, 2]))
    with pytest.raises(exact2048.UsageError, match="at least one game"):
        exact2048.Games("3x3", 0)
    with pytest.raises(TypeError):
        exact2048.Games("3x3", 1).step(np.array([0.5]))
    with pytest.raises(exact2048.UsageError, match="without a mask"):
        envs.step(np.ma.masked_array([0, 1], mask=[False, True]))
