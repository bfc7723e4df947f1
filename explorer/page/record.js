// A game's record: a line of JSON in the program's format. The page loads this file when a user exports or imports a game.

import { MOVES, emptyBoard, exponentOf, isStone, parseBoard, toText, withTile } from "./board.js";
import { Game } from "./game.js";

/** @typedef {import("./board.js").Move} Move */
/** @typedef {import("./board.js").Size} Size */

const LETTERS = { left: "L", right: "R", up: "U", down: "D" };

/** Largest number of moves of an imported game. No game on a solvable board is longer. */
const MOST_MOVES = 1_000_000;

/** A record from the last edited board to the current board, as `exact2048 play --record` writes it. @param {Game} game */
export function record(game) {
  const past = game.past;
  const from = past.findLastIndex((step) => step.move === undefined);
  const moves = past.slice(from + 1);
  const tile = (/** @type {{cell: number, exponent: number}} */ spawn) => [spawn.cell, 2 ** spawn.exponent];
  const { board, spawns } = past[from];
  // Start tiles do not tell where loose stones are.
  const first = game.size.loose > 0 ? { start: [], from: toText(board, game.size) }
    : { start: spawns.length === 2 ? spawns.map(tile) : tilesOf(board) };
  return JSON.stringify({
    game: 0,
    seed: 0,
    board: game.size.name,
    player: "explorer",
    score: game.now.score - past[from].score,
    cut_short: null,
    ...first,
    moves: moves.map((step) => LETTERS[/** @type {Move} */ (step.move)]).join(""),
    spawns: moves.map((step) => tile(step.spawns[0])),
    last: toText(game.board, game.size),
  });
}

/** Reads the game in a record's first line. Throws a description of the mistake. @param {string} text
 * @param {Size[]} sizes of the boards that the run knows */
export function read(text, sizes) {
  const line = text.split("\n").find((line) => line.trim() !== "") ?? "";
  /** @type {any} */
  let record;
  try {
    record = JSON.parse(line);
  } catch {
    throw new Error("This is not a game: expected a line of JSON, as “exact2048 play --record FILE” writes it.");
  }
  const { board: given, start, from, moves, spawns } = record ?? {};
  const size = sizes.find(({ name }) => name === given);
  if (size === undefined) throw new Error(`The game is on a board of ${String(given).slice(0, 40)}, but this run has ${sizes[0].name}.`);
  const isList = Array.isArray(start) && Array.isArray(spawns) && typeof moves === "string";
  if (!isList || spawns.length !== moves.length || moves.length > MOST_MOVES) {
    throw new Error("This is not a game: expected “start”, and as many “spawns” as “moves”.");
  }
  let first = typeof from === "string" ? parseBoard(from, size) : emptyBoard(size);
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

/** The tiles of an edited board. @param {number[]} board */
function tilesOf(board) {
  return board.flatMap((exponent, cell) => (exponent === 0 || isStone(exponent) ? [] : [[cell, 2 ** exponent]]));
}

/** @param {any} tile @param {number[]} board */
function readTile(tile, board) {
  const [cell, value] = Array.isArray(tile) ? tile : [];
  const exponent = exponentOf(value);
  if (!Number.isInteger(cell) || cell < 0 || cell >= board.length || exponent === null) {
    throw new Error(`${JSON.stringify(tile)?.slice(0, 40)} is not a tile: expected a cell and a tile, as in [0,2].`);
  }
  return { cell, exponent };
}
