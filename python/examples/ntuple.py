#!/usr/bin/env python3
"""Trains an agent on 3x3 for about a minute, and plots the agent's loss against perfect play.

The agent is the textbook agent for 2048. It values a board after a move by a sum of eight weights. Each weight belongs to
the tiles of one 2x3 part of a rotation or reflection of the board. The agent learns the weights by temporal differences
(Szubert and Jaskowski, 2014), and uses only NumPy. Package exact2048 provides the games, 1,024 at a time, and the measure
of the agent's quality: its *regret*. The regret is the loss of the agent's moves against perfect play.

    pip install './python[gym]' matplotlib
    python python/examples/ntuple.py --run runs/3x3 --games 50000 -o regret.png

If the run does not exist, the program first solves it in a few seconds.
"""

import argparse

import exact2048
import exact2048.gym
import numpy as np

SIDE = 3
EXPONENTS = 12  # 0 to 11; the largest tile of 3x3 is 1,024.
GAMES = 1024
ROWS = EXPONENTS**SIDE
WEIGHTS_OF_ROW = EXPONENTS ** np.arange(SIDE)[::-1]


def slide(row):
    """Slides a row to the left. Returns the new row and the score."""
    tiles = [exponent for exponent in row if exponent]
    slid, score = [], 0
    while tiles:
        exponent = tiles.pop(0)
        if tiles and tiles[0] == exponent:
            exponent = min(tiles.pop(0) + 1, EXPONENTS - 1)
            score += 1 << exponent
        slid.append(exponent)
    return slid + [0] * (SIDE - len(slid)), score


ALL_ROWS = np.stack(np.unravel_index(np.arange(ROWS), (EXPONENTS,) * SIDE), axis=1)
SLID = np.array([slide(row)[0] for row in ALL_ROWS], dtype=np.uint8)
SCORES = np.array([slide(row)[1] for row in ALL_ROWS], dtype=np.float64)


def afterstates(boards):
    """Boards after each move [N, 4, R, C], and scores [N, 4]. Scores of illegal moves are minus infinity."""
    turned = boards.transpose(0, 2, 1)
    views = [boards, boards[:, :, ::-1], turned, turned[:, :, ::-1]]
    after = np.empty((len(boards), 4, SIDE, SIDE), dtype=np.uint8)
    scores = np.empty((len(boards), 4))
    for move, view in enumerate(views):
        rows = view @ WEIGHTS_OF_ROW
        slid = SLID[rows]
        slid = slid[:, :, ::-1] if move % 2 else slid
        after[:, move] = slid.transpose(0, 2, 1) if move > 1 else slid
        scores[:, move] = SCORES[rows].sum(axis=1)
    legal = (after != boards[:, None]).any(axis=(2, 3))
    scores[~legal] = -np.inf
    return after, scores


def parts():
    """The cells of a 2x3 part in each of the eight images of the board."""
    cells = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    images = [np.rot90(board, turns) for board in (cells, cells.T) for turns in range(4)]
    return np.array([image[:2].reshape(-1) for image in images])


class Agent:
    """Weights of parts of boards, and the learning rule."""

    def __init__(self, rate):
        self.parts = parts()
        self.scale = EXPONENTS ** np.arange(6)
        self.weights = np.zeros(EXPONENTS**6)
        self.rate = rate

    def entries(self, boards):
        """The numbers of the weights of boards: [N, 8]."""
        return boards.reshape(-1, SIDE * SIDE)[:, self.parts] @ self.scale

    def choose(self, boards):
        """For each board: the move with the highest estimate, the numbers of the afterstate's weights, and the estimate."""
        after, scores = afterstates(boards)
        entries = self.entries(after).reshape(len(boards), 4, -1)
        values = scores + self.weights[entries].sum(axis=2)
        moves = values.argmax(axis=1)
        which = np.arange(len(boards))
        return moves, entries[which, moves], np.maximum(values[which, moves], 0)

    def learn(self, entries, targets):
        """Moves the values of afterstates towards their targets."""
        errors = targets - self.weights[entries].sum(axis=1)
        found, place, count = np.unique(entries, return_inverse=True, return_counts=True)
        sums = np.bincount(place.reshape(-1), np.repeat(errors, entries.shape[1]))
        # Averages the errors of all games that use a weight, because these errors are about the same.
        self.weights[found] += self.rate / entries.shape[1] * sums / count


def evaluate(agent, run, games=256, seed=1):
    """Plays games without learning. Returns the mean score and the mean regret of a game."""
    envs = exact2048.gym.Exact2048VectorEnv(games, board="3x3", run=run)
    boards, _ = envs.reset(seed=seed)
    alive = np.ones(games, dtype=bool)
    score = regret = 0.0
    while alive.any():
        moves, _, _ = agent.choose(boards)
        boards, rewards, over, _, info = envs.step(moves)
        score += rewards[alive].sum()
        regret += info["regret"][alive].sum()
        alive &= ~over
    return score / games, regret / games


def learn(run, games, seed=0, report=print):
    """Learns from games. Returns numbers of played games, mean scores and mean regrets of regular evaluations."""
    agent = Agent(rate=0.5)
    envs = exact2048.Games("3x3", GAMES)
    draw = np.random.default_rng(seed)
    boards, _ = envs.reset([int(number) for number in draw.integers(0, 2**63, GAMES)])
    over = np.zeros(GAMES, dtype=bool)
    before = None
    course, played = [], 0
    while True:
        if not course or played > games * (len(course) / 12) ** 2:
            score, regret = evaluate(agent, run)
            course.append((played, score, regret))
            report(f"{played:>9,} games: score {score:7.1f}, regret {regret:7.1f} a game")
            if played >= games:
                return np.array(course)
        for _ in range(50):
            moves, entries, values = agent.choose(boards)
            if before is not None:
                # A finished game has value 0. The board of a restarted game is independent of the previous board.
                agent.learn(before[~anew], np.where(over, 0.0, values)[~anew])
            anew, before = over, entries
            boards, _, over, _, _ = envs.step(moves)
            played += int(over.sum())
        agent.rate = 0.5 * max(0.05, 1 - played / games)


def plot(course, run, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    played, scores, regrets = course.T
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), constrained_layout=True)
    left.plot(played / 1000, scores, "o-", label="the agent")
    left.axhline(run.start_value, color="black", linestyle="--", label=f"perfect play, {run.start_value:,.1f}")
    left.set(ylabel="mean score of 256 games", ylim=(0, None))
    left.legend(loc="lower right")
    right.plot(played / 1000, regrets, "o-", color="tab:red")
    right.set(ylabel="mean regret of a game, points", ylim=(0, None))
    for axes in (left, right):
        axes.set(xlabel="thousands of games played")
        axes.grid(alpha=0.3)
    figure.suptitle("A 6-tuple network learns 3×3")
    figure.savefig(path, dpi=120)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", default="runs/3x3", help="folder of the run of 3x3, solved if it does not exist")
    parser.add_argument("--games", type=int, default=50_000, help="number of games to learn from")
    parser.add_argument("-o", "--output", default="regret.png", help="file of the plot")
    options = parser.parse_args()
    run = exact2048.solve("3x3", options.run, progress=True)
    course = learn(run, options.games)
    plot(course, run, options.output)
    first, last = course[0, 2], course[-1, 2]
    if not last < first / 2:
        raise SystemExit(f"expected the mean loss of a game to halve, found {first:.0f} points before learning and {last:.0f} after")


if __name__ == "__main__":
    main()
