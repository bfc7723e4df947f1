// A game with its history: moves, spawns, undo and redo, and its record as a line of JSON.

import { MOVES, drawSpawn, exponentOf, makeMove, toText, withTile } from "./board.js";

/** @typedef {import("./board.js").Move} Move */
/** @typedef {import("./board.js").Size} Size */
/**
 * A board of a game and how it came to be: the move and the tiles that led here, of an edited board none. `answer` is what
 * the server says of the board, once it has.
 * @typedef {{board: number[], score: number, move?: Move, spawns: {cell: number, exponent: number}[],
 *   answer?: any}} Step
 */

const LETTERS = { left: "L", right: "R", up: "U", down: "D" };

/** Most moves of a game that is imported: no game on a board that can be solved is longer. */
const MOST_MOVES = 1_000_000;

/** What a move loses: how much better the best one is. @param {any[]} moves as the server tells them @param {Move} move */
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
    let board = Array.from({ length: size.rows * size.columns }, () => 0);
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

  /** What the move that led to a step has lost; `undefined` while that is not known. @param {number} at */
  loss(at) {
    const { move } = this.steps[at];
    const moves = this.steps[at - 1]?.answer?.moves;
    return move === undefined || moves === undefined ? undefined : lossOf(moves, move);
  }

  get board() {
    return this.now.board;
  }

  /** The steps from the start to here. */
  get past() {
    return this.steps.slice(0, this.at + 1);
  }

  /** Goes on from here; what was undone is forgotten. @param {Step} step */
  add(step) {
    this.steps.length = this.at + 1;
    this.steps.push(step);
    this.at += 1;
  }

  /** Makes a move and puts a tile. @param {Move} move @param {{cell: number, exponent: number}} spawn */
  play(move, spawn) {
    const made = makeMove(this.board, move, this.size);
    if (made === null || made.after[spawn.cell] !== 0) throw new Error("That move or tile is not possible here.");
    const board = withTile(made.after, spawn.cell, spawn.exponent);
    this.add({ board, score: this.now.score + made.score, move, spawns: [spawn] });
  }

  /** Puts another board in place of what there is: a game of its own. @param {number[]} board */
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

  /** The game from its last edited board to here, as `exact2048 play --record` writes it. */
  record() {
    const past = this.past;
    const from = past.findLastIndex((step) => step.move === undefined);
    const moves = past.slice(from + 1);
    const tile = (/** @type {{cell: number, exponent: number}} */ spawn) => [spawn.cell, 2 ** spawn.exponent];
    const start = past[from].spawns.length === 2 ? past[from].spawns.map(tile) : tilesOf(past[from].board);
    return JSON.stringify({
      game: 0,
      seed: 0,
      board: `${this.size.rows}x${this.size.columns}`,
      player: "explorer",
      score: this.now.score - past[from].score,
      cut_short: null,
      start,
      moves: moves.map((step) => LETTERS[/** @type {Move} */ (step.move)]).join(""),
      spawns: moves.map((step) => tile(step.spawns[0])),
      last: toText(this.board, this.size),
    });
  }

  /** The game of a record's first line; an error says what is wrong with it. @param {string} text @param {Size} size */
  static read(text, size) {
    const line = text.split("\n").find((line) => line.trim() !== "") ?? "";
    /** @type {any} */
    let record;
    try {
      record = JSON.parse(line);
    } catch {
      throw new Error("That is no game: expected a line of JSON, as “exact2048 play --record FILE” writes it.");
    }
    const { board: given, start, moves, spawns } = record ?? {};
    const own = `${size.rows}x${size.columns}`;
    if (given !== own) throw new Error(`That game is on a board of ${String(given).slice(0, 20)}, and this run of ${own}.`);
    const isList = Array.isArray(start) && Array.isArray(spawns) && typeof moves === "string";
    if (!isList || spawns.length !== moves.length || moves.length > MOST_MOVES) {
      throw new Error("That is no game: expected “start”, and as many “spawns” as “moves”.");
    }
    let first = Array.from({ length: size.rows * size.columns }, () => 0);
    const placed = start.map((tile) => readTile(tile, first));
    for (const { cell, exponent } of placed) first = withTile(first, cell, exponent);
    const game = new Game(size, first, placed);
    for (let i = 0; i < moves.length; i++) {
      const move = MOVES["LRUD".indexOf(moves[i])];
      if (move === undefined) throw new Error(`Move ${i + 1} is “${moves[i]}”: expected L, R, U or D.`);
      try {
        game.play(move, readTile(spawns[i], game.board));
      } catch {
        throw new Error(`Move ${i + 1} (${move}) or the tile after it is not possible on ${toText(game.board, size)}.`);
      }
    }
    game.at = 0;
    return game;
  }
}

/** The tiles of a board that was edited. @param {number[]} board */
function tilesOf(board) {
  return board.flatMap((exponent, cell) => (exponent === 0 ? [] : [[cell, 2 ** exponent]]));
}

/** @param {any} tile @param {number[]} board */
function readTile(tile, board) {
  const [cell, value] = Array.isArray(tile) ? tile : [];
  const exponent = exponentOf(value);
  if (!Number.isInteger(cell) || cell < 0 || cell >= board.length || exponent === null) {
    throw new Error(`${JSON.stringify(tile)?.slice(0, 40)} is no tile: expected a cell and a tile, as in [0,2].`);
  }
  return { cell, exponent };
}
