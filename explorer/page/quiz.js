// The quiz: which move is best?

import { ask } from "./api.js";
import { MOVES, makeMove, parseBoard } from "./board.js";
import { byId, element, tell } from "./dom.js";
import { lossOf } from "./game.js";
import { onSwipe, showBoard } from "./grid.js";
import { lossText, percent, valueText } from "./numbers.js";

/** @typedef {import("./board.js").Move} Move */

/** Positions that are fetched at once. */
const AT_ONCE = 40;

/** @type {any} */
let run;
/** @type {any[]} */
let waiting = [];
/** @type {{board: number[], position: any, isAnswered: boolean} | null} */
let now = null;
let [answers, right, lost] = [0, 0, 0];
/** Ends what is asked about a run that is not shown any more. */
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

/** Begins with a run. @param {any} opened */
export function openRun(opened) {
  if (run === opened && now !== null) return;
  run = opened;
  asking.abort();
  asking = new AbortController();
  [answers, right, lost, waiting] = [0, 0, 0, []];
  byId("quiz-counts").textContent = run.best_moves
    ? "This run stores best moves alone: of several that are equally good it knows one, and only that counts as right."
    : "An answer counts as right where no stored digit tells it from the best move.";
  showNone("");
  next();
}

/** A key that is for the quiz. @param {KeyboardEvent} event @returns {boolean} whether it was */
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
    if (waiting.length === 0) {
      const seed = Math.floor(Math.random() * 2 ** 31);
      const told = await ask("positions", { run: run.name, kind: "any", sample: 400, limit: AT_ONCE, seed }, signal);
      if (signal.aborted) return;
      waiting = told.positions;
      waiting.sort(() => Math.random() - 0.5);
    }
    const position = waiting.pop();
    if (position === undefined) {
      showNone("No position with a choice was found in this run.");
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
  const isRight = loss === 0 || now.position.moves.some((/** @type {any} */ other) => other.move === move && other.best);
  now.isAnswered = true;
  answers += 1;
  right += isRight ? 1 : 0;
  lost += loss ?? 0;
  const best = now.position.moves.filter((/** @type {any} */ other) => other.best).map((/** @type {any} */ other) => other.move);
  const loses = loss === undefined ? `what ${move} loses, this run does not store` : `${move} loses ${valueText(loss, run.isChance)}`;
  const said = isRight ? `Right: ${best.join(" or ")}.` : `${best.join(" or ")} is best; ${loses}.`;
  show(said[0].toUpperCase() + said.slice(1));
}

/** @param {string} said */
function show(said) {
  if (now === null) return;
  const { board, position, isAnswered } = now;
  showBoard(byId("quiz-board"), board, run.size);
  byId("quiz-answer").textContent = said;
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

/** Takes the board away. @param {string} said what is said in its place */
function showNone(said) {
  now = null;
  const place = byId("quiz-board");
  place.replaceChildren();
  for (const name of ["role", "aria-label"]) place.removeAttribute(name);
  byId("quiz-answer").textContent = said;
  for (const button of byId("quiz-moves").children) button.disabled = true;
  byId("quiz-table").hidden = true;
  showTally();
}

function showTally() {
  byId("quiz-count").textContent = String(answers);
  byId("quiz-right").textContent = answers === 0 ? "–" : percent(right / answers);
  byId("quiz-loss").textContent = answers === 0 || run.best_moves ? "–" : lossText(lost / answers, run.isChance);
}
