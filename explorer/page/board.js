// Boards and the rules of the game. A board is an array of exponents, row by row. Exponent 0 is an empty cell, and STONE
// is a cell that holds no tile.

/** Rows, columns and stones. `name` is the size as text. `stones` has one symbol a cell: "." for a playable cell, "x" for
 * a lock, "#" for a wall. `loose` is the number of loose stones, which slide among the tiles.
 * @typedef {{name: string, rows: number, columns: number, stones: string, loose: number}} Size */
/** @typedef {"left" | "right" | "up" | "down"} Move */

/** @type {Move[]} */
export const MOVES = ["left", "right", "up", "down"];

const LARGEST = 15;

/** Number in the cell of a stone. It is larger than every exponent, so two stones never merge. */
const STONE = LARGEST + 1;

/** Reads a size such as "3x3", "4x4:..../..../.xxx/.xxx" or "4x4+8x". @param {string} name @returns {Size} */
export function parseSize(name) {
  const [fixed, loose] = name.split("+");
  const [sides, picture] = fixed.split(":");
  const [rows, columns] = sides.split("x").map(Number);
  const stones = picture?.replaceAll("/", "") ?? ".".repeat(rows * columns);
  return { name, rows, columns, stones, loose: parseInt(loose ?? "0", 10) };
}

/** The sizes of boards that a run knows. The second one is that of a real game, whose largest tiles are the stones.
 * @param {Size} size @returns {Size[]} */
export function sizesOf(size) {
  return largeTilesOf(size) === 0 ? [size] : [size, parseSize(`${size.rows}x${size.columns}`)];
}

/** Number of stones that stand for large tiles: locks and loose stones. @param {Size} size */
export function largeTilesOf({ stones, loose }) {
  return [...stones].filter((symbol) => symbol === "x").length + loose;
}

/** A board without tiles. Loose stones are in random cells. @param {Size} size */
export function emptyBoard({ stones, loose }) {
  const board = [...stones].map((symbol) => (symbol === "." ? 0 : STONE));
  for (let i = 0; i < loose; i++) {
    const empty = emptyCells(board);
    board[empty[Math.floor(Math.random() * empty.length)]] = STONE;
  }
  return board;
}

/** Whether a cell holds a stone. @param {number} exponent */
export function isStone(exponent) {
  return exponent === STONE;
}

/** The text of a cell: its stone or its tile, 0 for an empty cell. @param {number} exponent @param {number} cell @param {Size} size */
export function cellText(exponent, cell, { stones }) {
  if (!isStone(exponent)) return String(tileOf(exponent));
  return stones[cell] === "." ? "x" : stones[cell];
}

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
 * Makes a move. Returns the board after the move and its score; `null` if the board does not change or a lock would slide.
 * @param {number[]} board @param {Move} move @param {Size} size
 */
export function makeMove(board, move, size) {
  const after = board.map(() => 0);
  let score = 0;
  for (const line of lines(move, size)) {
    let resting = 0;
    let taken = 0;
    for (const [at, cell] of line.entries()) {
      const exponent = board[cell];
      if (exponent === 0) continue;
      if (size.stones[cell] !== ".") {
        // Fewer tiles than cells are before the lock if a cell there is empty or tiles merge.
        if (size.stones[cell] === "x" && taken < at) return null;
        after[cell] = STONE;
        [resting, taken] = [0, at + 1];
        continue;
      }
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

/** A board in the text form of the API. @param {number[]} board @param {Size} size */
export function toText(board, size) {
  const { rows, columns } = size;
  const cells = board.map((exponent, cell) => cellText(exponent, cell, size));
  const row = (/** @type {number} */ r) => cells.slice(r * columns, (r + 1) * columns).join(" ");
  return Array.from({ length: rows }, (_, r) => row(r)).join(" / ");
}

/** Parses a board. Throws a description of the mistake. @param {string} text @param {Size} size */
export function parseBoard(text, { rows, columns, stones, loose }) {
  const found = text.trim().split(/[/\n]/).map((row) => row.split(/[\s,]+/).filter((cell) => cell !== ""));
  if (found.length !== rows || found.some((row) => row.length !== columns)) {
    throw new Error(`This is not a ${rows}×${columns} board: expected ${rows} rows of ${columns} tiles, separated by /.`);
  }
  const board = found.flat().map((cell, at) => {
    if (stones[at] !== ".") {
      if (cell.toLowerCase() === stones[at]) return STONE;
      throw new Error(`“${cell.slice(0, 20)}” is in the cell of a stone: expected ${stones[at]}.`);
    }
    if (cell === "." || cell === "0") return 0;
    if (loose > 0 && cell.toLowerCase() === "x") return STONE;
    const exponent = /^[0-9]{1,5}$/.test(cell) ? exponentOf(Number(cell)) : null;
    if (exponent === null) throw new Error(`“${cell.slice(0, 20)}” is not a tile: expected 0, 2, 4, 8 and so on.`);
    return exponent;
  });
  const shown = board.filter((exponent, at) => isStone(exponent) && stones[at] === ".").length;
  if (shown !== loose) throw new Error(`This board has ${shown} loose stones: expected ${loose}, each written as x.`);
  return board;
}

/** Parses a board of a run, or a position of the real game if the run has stones and the text shows none.
 * @param {string} text @param {Size} size */
export function readBoard(text, size) {
  const sizes = sizesOf(size);
  const found = /x/i.test(text) ? sizes[0] : sizes[sizes.length - 1];
  return { board: parseBoard(text, found), size: found };
}
