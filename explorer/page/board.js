// Boards and the rules of the game. A board is an array of exponents, row by row. Exponent 0 is an empty cell.

/** @typedef {{rows: number, columns: number}} Size */
/** @typedef {"left" | "right" | "up" | "down"} Move */

/** @type {Move[]} */
export const MOVES = ["left", "right", "up", "down"];

const LARGEST = 15;

/** The tile of each exponent; 0 for an empty cell. */
export const TILES = Array.from({ length: LARGEST + 1 }, (_, exponent) => tileOf(exponent));

/** The rows or columns of a move. Each begins at the wall that tiles slide to. @param {Move} move @param {Size} size */
function lines(move, { rows, columns }) {
  const row = (/** @type {number} */ r) => Array.from({ length: columns }, (_, c) => r * columns + c);
  const column = (/** @type {number} */ c) => Array.from({ length: rows }, (_, r) => r * columns + c);
  const across = move === "left" || move === "right";
  const all = Array.from({ length: across ? rows : columns }, (_, i) => (across ? row(i) : column(i)));
  return move === "left" || move === "up" ? all : all.map((line) => line.reverse());
}

/**
 * Makes a move. Returns the board after the move and its score; `null` if the board does not change.
 * @param {number[]} board @param {Move} move @param {Size} size
 */
export function makeMove(board, move, size) {
  const after = board.map(() => 0);
  let score = 0;
  for (const line of lines(move, size)) {
    let resting = 0;
    let taken = 0;
    for (const cell of line) {
      const exponent = board[cell];
      if (exponent === 0) continue;
      if (exponent === resting && exponent < LARGEST) {
        after[line[taken - 1]] = exponent + 1;
        score += 2 ** (exponent + 1);
        resting = 0;
      } else {
        after[line[taken]] = exponent;
        resting = exponent;
        taken += 1;
      }
    }
  }
  return after.every((exponent, cell) => exponent === board[cell]) ? null : { after, score };
}

/** Whether any move is legal. @param {number[]} board @param {Size} size */
export function canMove(board, size) {
  return MOVES.some((move) => makeMove(board, move, size));
}

/** The empty cells. @param {number[]} board */
export function emptyCells(board) {
  return board.flatMap((exponent, cell) => (exponent === 0 ? [cell] : []));
}

/** A board with one more tile. @param {number[]} board @param {number} cell @param {number} exponent */
export function withTile(board, cell, exponent) {
  const other = board.slice();
  other[cell] = exponent;
  return other;
}

/** Draws a random cell and tile. @param {number[]} board @param {number} spawn4 the probability of a 4 */
export function drawSpawn(board, spawn4) {
  const empty = emptyCells(board);
  const cell = empty[Math.floor(Math.random() * empty.length)];
  return { cell, exponent: Math.random() < spawn4 ? 2 : 1 };
}

/** The tile of an exponent. @param {number} exponent */
export function tileOf(exponent) {
  return exponent === 0 ? 0 : 2 ** exponent;
}

/** The exponent of a tile; `null` for an invalid tile. @param {number} tile */
export function exponentOf(tile) {
  const exponent = Math.log2(tile);
  return Number.isInteger(exponent) && exponent >= 1 && exponent <= LARGEST ? exponent : null;
}

/** The sum of the tiles. @param {number[]} board */
export function layerOf(board) {
  return board.reduce((sum, exponent) => sum + tileOf(exponent), 0);
}

/** A board in the text form of the API. @param {number[]} board @param {Size} size */
export function toText(board, { rows, columns }) {
  const row = (/** @type {number} */ r) => board.slice(r * columns, (r + 1) * columns).map(tileOf).join(" ");
  return Array.from({ length: rows }, (_, r) => row(r)).join(" / ");
}

/** Parses a board. Throws a description of the mistake. @param {string} text @param {Size} size */
export function parseBoard(text, { rows, columns }) {
  const found = text.trim().split(/[/\n]/).map((row) => row.split(/[\s,]+/).filter((cell) => cell !== ""));
  if (found.length !== rows || found.some((row) => row.length !== columns)) {
    throw new Error(`This is not a ${rows}×${columns} board: expected ${rows} rows of ${columns} tiles, separated by /.`);
  }
  return found.flat().map((cell) => {
    if (cell === "." || cell === "0") return 0;
    const exponent = /^[0-9]{1,5}$/.test(cell) ? exponentOf(Number(cell)) : null;
    if (exponent === null) throw new Error(`“${cell.slice(0, 20)}” is not a tile: expected 0, 2, 4, 8 and so on.`);
    return exponent;
  });
}
