// The quiz: which move is best?

import { MOVES, makeMove, parseBoard } from "./board.js";
import { byId, element, tell } from "./dom.js";
import { lossOf } from "./game.js";
import { onSwipe, showBoard } from "./grid.js";
import { lossText, percent, valueText } from "./numbers.js";
import { drawPosition } from "./positions.js";

/** @typedef {import("./board.js").Move} Move */

/** @type {any} */
let run;
/** @type {{board: number[], position: any, isAnswered: boolean} | null} */
let now = null;
let [answers, right, lost] = [0, 0, 0];
/** Cancels requests about a run that is no longer shown. */
let asking = new AbortController();

/** Sets the buttons up. @param {(board: number[]) => void} openInPlay */
export function setUp(openInPlay) {
  byId("quiz-next").onclick = next;
  byId("quiz-open").onclick = () => now && openInPlay(now.board);
  onSwipe(byId("quiz-board"), answer);
  byId("quiz-moves").replaceChildren(...MOVES.map((move) => {
    const button = element("button", { "data-move": move }, move);
    button.onclick = () => answer(move);
    return button;
  }));
}

/** Starts the quiz on a run. @param {any} opened */
export function openRun(opened) {
  if (run === opened && now !== null) return;
  run = opened;
  asking.abort();
  asking = new AbortController();
  [answers, right, lost] = [0, 0, 0];
  byId("quiz-counts").textContent = run.best_moves
    ? "This run stores one best move for each position. Only this move is right, even if other moves are equally good."
    : "An answer is right if its stored value equals the best one.";
  showNone("");
  next();
}

/** Handles a key. @param {KeyboardEvent} event @returns {boolean} whether the quiz used it */
export function key(event) {
  const move = /^Arrow(Left|Right|Up|Down)$/.exec(event.key)?.[1].toLowerCase();
  if (move !== undefined) answer(/** @type {Move} */ (move));
  else if ((event.key === " " || event.key === "Enter") && !(event.target instanceof HTMLButtonElement)) next();
  else return false;
  return true;
}

async function next() {
  const { signal } = asking;
  try {
    const position = await drawPosition(run, signal);
    if (signal.aborted) return;
    if (position === undefined) {
      showNone("This run has no position for the quiz.");
      return;
    }
    now = { board: parseBoard(position.board, run.size), position, isAnswered: false };
    show("");
  } catch (error) {
    if (!signal.aborted) tell(/** @type {Error} */ (error).message, "error");
  }
}

/** @param {Move} move */
function answer(move) {
  if (now === null || now.isAnswered) return;
  if (makeMove(now.board, move, run.size) === null) {
    byId("quiz-answer").textContent = `No tile can move ${move}. Choose another move.`;
    return;
  }
  const loss = lossOf(now.position.moves, move);
  const isRight = loss === 0 || now.position.moves.some((/** @type {any} */ other) => other.move === move && (other.best || other.may_be_best));
  now.isAnswered = true;
  answers += 1;
  right += isRight ? 1 : 0;
  lost += loss ?? 0;
  const best = now.position.moves.filter((/** @type {any} */ other) => other.best).map((/** @type {any} */ other) => other.move);
  const loses = loss === undefined ? `this run does not store the loss of ${move}` : `${move} loses ${valueText(loss, run.isChance)}`;
  const text = isRight ? `Right: ${best.join(" or ")}.` : `${best.join(" or ")} is best; ${loses}.`;
  show(text[0].toUpperCase() + text.slice(1));
}

/** @param {string} text */
function show(text) {
  if (now === null) return;
  const { board, position, isAnswered } = now;
  showBoard(byId("quiz-board"), board, run.size);
  byId("quiz-answer").textContent = text;
  for (const button of byId("quiz-moves").children) {
    button.toggleAttribute("disabled", isAnswered || makeMove(board, button.dataset.move, run.size) === null);
  }
  showTally();
  byId("quiz-table").hidden = !isAnswered;
  byId("quiz-values").replaceChildren(...position.moves.map((/** @type {any} */ move) => {
    const loss = lossOf(position.moves, move.move);
    return element("tr", { class: move.best ? "best" : move.legal ? "" : "illegal" },
      element("td", {}, move.move), element("td", { class: run.best_moves ? "greyed" : "" }, !move.legal ? "not legal" : run.best_moves ? "–" : valueText(move.value, run.isChance)),
      element("td", { class: loss ? "loses" : "" }, loss === undefined ? "" : lossText(loss, run.isChance)));
  }));
}

/** Removes the board. @param {string} text the message in its place */
function showNone(text) {
  now = null;
  const place = byId("quiz-board");
  place.replaceChildren();
  for (const name of ["role", "aria-label"]) place.removeAttribute(name);
  byId("quiz-answer").textContent = text;
  for (const button of byId("quiz-moves").children) button.disabled = true;
  byId("quiz-table").hidden = true;
  showTally();
}

function showTally() {
  byId("quiz-count").textContent = String(answers);
  byId("quiz-right").textContent = answers === 0 ? "–" : percent(right / answers);
  byId("quiz-loss").textContent = answers === 0 || run.best_moves ? "–" : lossText(lost / answers, run.isChance);
}
