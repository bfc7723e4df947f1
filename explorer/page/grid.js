// Boards on the page: display, editing, placement of tiles, swipes.

import { cellText, isStone } from "./board.js";
import { element } from "./dom.js";

/** @typedef {import("./board.js").Size} Size */

/** Smallest length of a swipe in pixels. */
const SWIPE = 24;

/** A board in words. @param {number[]} board @param {Size} size */
export function inWords(board, size) {
  const { rows, columns } = size;
  const cells = board.map((exponent, cell) => cellInWords(exponent, cell, size));
  const row = (/** @type {number} */ r) => cells.slice(r * columns, (r + 1) * columns).join(", ");
  return Array.from({ length: rows }, (_, r) => `Row ${r + 1}: ${row(r)}.`).join(" ");
}

/** A cell in words. @param {number} exponent @param {number} cell @param {Size} size */
function cellInWords(exponent, cell, size) {
  if (isStone(exponent)) return { ".": "large tile", x: "locked", "#": "wall" }[size.stones[cell]];
  return exponent === 0 ? "empty" : cellText(exponent, cell, size);
}

/** The visible text of a cell. @param {number} exponent @param {number} cell @param {Size} size */
function shown(exponent, cell, size) {
  return exponent === 0 ? "" : cellText(exponent, cell, size);
}

/**
 * Shows a board in a place. `spawned` lists the cells with new tiles, `notes` the lines of small text in each cell.
 * @param {HTMLElement} place @param {number[]} board @param {Size} size
 * @param {{spawned?: number[], notes?: (string[] | undefined)[]}} [more]
 */
export function showBoard(place, board, size, { spawned = [], notes = [] } = {}) {
  place.style.setProperty("--columns", String(size.columns));
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", inWords(board, size));
  place.replaceChildren(...board.map((exponent, cell) => {
    const isNew = spawned.includes(cell) ? " new" : "";
    const note = (notes[cell] ?? []).map((line) => element("small", {}, line));
    return element("span", { class: `tile t${exponent}${isNew}` }, shown(exponent, cell, size), ...note);
  }));
}

/**
 * Shows a board with cells that users can press by mouse, touch or keyboard. Arrow keys move between cells.
 * @param {HTMLElement} place @param {number[]} board @param {Size} size @param {(cell: number) => boolean} isOpen
 * @param {(cell: number, event: MouseEvent | KeyboardEvent) => void} press
 */
export function showCells(place, board, size, isOpen, press) {
  place.style.setProperty("--columns", String(size.columns));
  place.setAttribute("role", "group");
  place.setAttribute("aria-label", "Cells of the board");
  const { columns } = size;
  const steps = /** @type {Record<string, number>} */ ({
    ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns,
  });
  const focused = [...place.children].indexOf(/** @type {Element} */ (document.activeElement));
  place.replaceChildren(...board.map((exponent, cell) => {
    const where = `row ${Math.floor(cell / columns) + 1}, column ${(cell % columns) + 1}`;
    const what = cellInWords(exponent, cell, size);
    const button = element("button", {
      class: `tile t${exponent}`, type: "button", "aria-label": `${where}: ${what}`,
    }, shown(exponent, cell, size));
    button.toggleAttribute("disabled", !isOpen(cell));
    button.addEventListener("click", (event) => press(cell, event));
    button.addEventListener("contextmenu", (event) => {
      event.preventDefault();
      press(cell, event);
    });
    button.addEventListener("keydown", (event) => {
      if (event.key in steps) {
        event.preventDefault();
        event.stopPropagation();
        const next = nextOpen(cell, steps[event.key], board.length, isOpen);
        /** @type {HTMLElement} */ (place.children[next]).focus();
      } else if (/^[-+0-9]$/.test(event.key)) {
        press(cell, event);
      }
    });
    return button;
  }));
  const first = board.findIndex((_, cell) => isOpen(cell));
  const next = focused >= 0 && isOpen(focused) ? focused : first;
  if (next >= 0) /** @type {HTMLElement} */ (place.children[next]).focus();
}

/** The next open cell in a direction, with wraparound. @param {number} cell @param {number} step @param {number} cells
 * @param {(cell: number) => boolean} isOpen */
function nextOpen(cell, step, cells, isOpen) {
  for (let i = 1; i <= cells; i++) {
    const next = (((cell + i * step) % cells) + cells) % cells;
    if (isOpen(next)) return next;
  }
  return cell;
}

/** Calls `swiped` for each swipe over a place. @param {HTMLElement} place
 * @param {(move: import("./board.js").Move) => void} swiped */
export function onSwipe(place, swiped) {
  /** @type {{x: number, y: number} | null} */
  let from = null;
  place.addEventListener("pointerdown", (event) => (from = { x: event.clientX, y: event.clientY }));
  place.addEventListener("pointercancel", () => (from = null));
  window.addEventListener("pointerup", (event) => {
    if (from === null) return;
    const [x, y] = [event.clientX - from.x, event.clientY - from.y];
    from = null;
    if (Math.max(Math.abs(x), Math.abs(y)) < SWIPE) return;
    if (Math.abs(x) > Math.abs(y)) swiped(x < 0 ? "left" : "right");
    else swiped(y < 0 ? "up" : "down");
  });
}

/** A small board for lists. @param {number[]} board @param {Size} size */
export function smallBoard(board, size) {
  const place = element("span", { class: "board small" });
  showBoard(place, board, size);
  return place;
}
