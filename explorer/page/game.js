// A game with its history: moves, spawns, undo and redo.

import { drawSpawn, emptyBoard, makeMove, withTile } from "./board.js";

/** @typedef {import("./board.js").Move} Move */
/** @typedef {import("./board.js").Size} Size */
/**
 * A board of a game, with the move and the spawns before it. An edited board has neither. `answer` is the server's
 * answer for the board, if known.
 * @typedef {{board: number[], score: number, move?: Move, spawns: {cell: number, exponent: number}[],
 *   answer?: any}} Step
 */

/** Loss of a move against the best move. @param {any[]} moves the server's moves @param {Move} move */
export function lossOf(moves, move) {
  const best = moves.find((other) => other.best);
  const made = moves.find((other) => other.move === move);
  if (typeof best?.value !== "number" || typeof made?.value !== "number") return undefined;
  return made.best ? 0 : Math.abs(best.value - made.value);
}

export class Game {
  /** @param {Size} size @param {number[]} board @param {{cell: number, exponent: number}[]} [spawns] */
  constructor(size, board, spawns = []) {
    this.size = size;
    /** @type {Step[]} */
    this.steps = [{ board, score: 0, spawns }];
    this.at = 0;
  }

  /** A new game with two tiles. @param {Size} size @param {number} spawn4 */
  static start(size, spawn4) {
    let board = emptyBoard(size);
    const spawns = [0, 1].map(() => {
      const spawn = drawSpawn(board, spawn4);
      board = withTile(board, spawn.cell, spawn.exponent);
      return spawn;
    });
    return new Game(size, board, spawns);
  }

  get now() {
    return this.steps[this.at];
  }

  /** Loss of the move before a step; `undefined` while unknown. @param {number} at */
  loss(at) {
    const { move } = this.steps[at];
    const moves = this.steps[at - 1]?.answer?.moves;
    return move === undefined || moves === undefined ? undefined : lossOf(moves, move);
  }

  get board() {
    return this.now.board;
  }

  /** The steps from the start to the current step. */
  get past() {
    return this.steps.slice(0, this.at + 1);
  }

  /** Adds a step, and drops the undone steps. @param {Step} step */
  add(step) {
    this.steps.length = this.at + 1;
    this.steps.push(step);
    this.at += 1;
  }

  /** Makes a move and places a tile. @param {Move} move @param {{cell: number, exponent: number}} spawn */
  play(move, spawn) {
    const made = makeMove(this.board, move, this.size);
    if (made === null || made.after[spawn.cell] !== 0) throw new Error("This move or tile is not possible here.");
    const board = withTile(made.after, spawn.cell, spawn.exponent);
    this.add({ board, score: this.now.score + made.score, move, spawns: [spawn] });
  }

  /** Replaces the board. The edited board starts a new record. @param {number[]} board */
  edit(board) {
    this.add({ board, score: this.now.score, spawns: [] });
  }

  undo() {
    if (this.at === 0) return false;
    this.at -= 1;
    return true;
  }

  redo() {
    if (this.at === this.steps.length - 1) return false;
    this.at += 1;
    return true;
  }
}
