"""Environments of 2048 for Gymnasium: one game, and many at once.

    import gymnasium

    env = gymnasium.make("Exact2048-v0", board="3x3")
    envs = gymnasium.make_vec("Exact2048-v0", num_envs=1024, board="4x4")

Observations are exponents (uint8 [R, C], 0 for an empty cell). Actions are 0 left, 1 right, 2 up, 3 down. An illegal move
changes nothing and has reward 0. The hundredth consecutive illegal move truncates the episode. With the objective "score",
the reward is the score of the move. With "reach:TILE", a win has reward 1 and ends the game.

`info` has `action_mask` (int8 [4], 1 for a legal move). With a run of the same board, `info` also has:

* `value`, the value of the board under perfect play,
* `action_values`, the value of each move, minus infinity for an illegal move,
* `regret` after a step, the loss of the move; 0 for an illegal move, which changes nothing.

If the board is not reachable in the run, `value` and `regret` are NaN.
"""

from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from ._exact2048 import Client, Games, Run, UsageError

Array = NDArray[Any]


def _check_run(run: Run | Client | None, games: Games) -> None:
    if run is not None and run.rules != games.rules:
        raise UsageError(f"expected a run of {games.rules}, found one of {run.rules}")


def _check_options(options: dict[str, Any] | None, known: str) -> None:
    unknown = [name for name in options or {} if name != known]
    if unknown:
        raise UsageError(f'expected no option but "{known}", found {", ".join(map(repr, unknown))}')


def _seeds(generator: np.random.Generator, count: int) -> list[int]:
    return [int(seed) for seed in generator.integers(0, 2**63, size=count)]


class _Judge:
    """The values of the boards of games, and the losses of moves."""

    def __init__(self, run: Run | Client, count: int) -> None:
        self.run = run
        self.values = np.zeros(count)
        self.actions = np.full((count, 4), -np.inf)

    def look(self, packed: Array, over: Array) -> None:
        """Look up boards. Finished games have value 0."""
        actions = self.run.action_values(packed)
        self.actions = np.where(np.isnan(actions), -np.inf, actions)
        best = self.actions.max(axis=1)
        self.values = np.where(over, 0.0, np.where(np.isinf(best), np.nan, best))

    def regrets(self, moves: Array) -> Array:
        """The losses of moves on the boards of the last lookup."""
        made = self.actions[np.arange(len(moves)), moves]
        return np.where(np.isinf(made), np.where(np.isnan(self.values), np.nan, 0.0), self.values - made)


class Exact2048Env(gymnasium.Env[Array, np.int64]):
    """One game. `reset(options={"board": BOARD})` begins the game with a given board."""

    metadata = {"render_modes": ["ansi"], "render_fps": 4}

    def __init__(
        self,
        board: str = "4x4",
        objective: str = "score",
        spawn4: str = "0.1",
        run: Run | Client | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.games = Games(board, 1, objective=objective, spawn4=spawn4)
        _check_run(run, self.games)
        self._judge = None if run is None else _Judge(run, 1)
        self.observation_space = spaces.Box(0, 15, self.games.shape, np.uint8)
        self.action_space = spaces.Discrete(4)
        self.render_mode = render_mode
        self._truncated = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        _check_options(options, "board")
        super().reset(seed=seed)
        boards, _ = self.games.reset(_seeds(self.np_random, 1))
        if options and "board" in options:
            self.games.place(0, options["board"])
            boards = self.games.boards()
        self._truncated = False
        return boards[0], self._info(False)

    def step(self, action: np.int64) -> tuple[Array, SupportsFloat, bool, bool, dict[str, Any]]:
        if self._truncated or not self.games.legal().any():
            # The episode remains ended until a reset.
            is_over = not self._truncated
            return self.games.boards()[0], 0.0, is_over, self._truncated, self._info(is_over)
        moves = np.array([action], dtype=np.int64)
        # Makes the step before the look-ups, because the step refuses invalid actions.
        boards, rewards, over, truncated, _ = self.games.step(moves)
        self._truncated = bool(truncated[0])
        regret = None if self._judge is None else self._judge.regrets(moves)[0]
        info = self._info(bool(over[0]))
        if regret is not None:
            info["regret"] = float(regret)
        return boards[0], float(rewards[0]), bool(over[0]), self._truncated, info

    def _info(self, over: bool) -> dict[str, Any]:
        info: dict[str, Any] = {"action_mask": self.games.legal()[0]}
        if self._judge is not None:
            self._judge.look(self.games.packed(), np.array([over]))
            info["value"] = float(self._judge.values[0])
            info["action_values"] = self._judge.actions[0].copy()
        return info

    def render(self) -> str | None:
        return str(self.games.board(0)).replace(" / ", "\n") if self.render_mode == "ansi" else None


class Exact2048VectorEnv(gymnasium.vector.VectorEnv[Array, Array, Array]):
    """Many games, stepped by one call. After the end of a game's episode, the next step restarts the game without a move.

    `reset(options={"boards": BOARDS})` begins the games with given boards. Each board must have a legal move.
    """

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(
        self,
        num_envs: int = 1,
        board: str = "4x4",
        objective: str = "score",
        spawn4: str = "0.1",
        run: Run | Client | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.num_envs = num_envs
        self.games = Games(board, num_envs, objective=objective, spawn4=spawn4)
        _check_run(run, self.games)
        self._judge = None if run is None else _Judge(run, num_envs)
        self.single_observation_space = spaces.Box(0, 15, self.games.shape, np.uint8)
        self.single_action_space = spaces.Discrete(4)
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)
        self.render_mode = render_mode
        # `_ended` marks games whose episode has ended; the next step restarts them. `_over` marks only those that are over,
        # not truncated.
        self._ended = np.zeros(num_envs, dtype=np.bool_)
        self._over = np.zeros(num_envs, dtype=np.bool_)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        _check_options(options, "boards")
        if isinstance(seed, list):
            generators = [np.random.default_rng(of_game) for of_game in seed]
            seeds = [_seeds(generator, 1)[0] for generator in generators]
            # Later resets without seeds draw from this generator.
            self._np_random = generators[0]
        else:
            super().reset(seed=seed)
            seeds = _seeds(self.np_random, self.num_envs)
        boards, legal = self.games.reset(seeds)
        if options and "boards" in options:
            if len(options["boards"]) != self.num_envs:
                raise UsageError(f"expected {self.num_envs} boards, found {len(options['boards'])}")
            for game, board in enumerate(options["boards"]):
                self.games.place(game, board)
            boards, legal = self.games.boards(), self.games.legal()
            over = np.flatnonzero(~legal.any(axis=1))
            if over.size:
                raise UsageError(f"expected boards with a legal move, found {self.games.board(int(over[0]))}")
        self._over = np.zeros(self.num_envs, dtype=np.bool_)
        self._ended = self._over
        return boards, self._info(legal)

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        moves = np.asanyarray(actions, dtype=np.int64)
        # Makes the step before the look-ups, because the step refuses invalid actions.
        boards, rewards, over, truncated, legal = self.games.step(moves)
        regrets = None if self._judge is None else np.where(self._ended, 0.0, self._judge.regrets(moves))
        self._over, self._ended = over, over | truncated
        info = self._info(legal)
        if regrets is not None:
            info["regret"] = regrets
        return boards, rewards, over.copy(), truncated, info

    def _info(self, legal: Array) -> dict[str, Any]:
        info: dict[str, Any] = {"action_mask": legal}
        if self._judge is not None:
            self._judge.look(self.games.packed(), self._over)
            info["value"], info["action_values"] = self._judge.values.copy(), self._judge.actions.copy()
        return info
