// The course of a game below the board: the expected result move by move, the losses, and games as files.

import * as boards from "./board.js";
import { chart } from "./chart.js";
import { byId, element, tell } from "./dom.js";
import { axisText, count, lossText, valueText, worthName } from "./numbers.js";

/** @typedef {import("./game.js").Game} Game */

/** The best moves. @param {any} answer @returns {string[]} */
export function bestOf(answer) {
  return answer.moves.filter((/** @type {any} */ move) => move.best).map((/** @type {any} */ move) => move.move);
}

/** Shows the expected result at each board of the game, and the loss of each move. @param {any} run @param {Game} game */
export function showCourse(run, game) {
  const past = game.past;
  const expected = past.map((step) => step.answer?.value === undefined ? undefined : step.answer.value + (run.unit === "points" ? step.score : 0));
  const points = /** @type {[number, number][]} */ (expected.flatMap((value, i) => (value === undefined ? [] : [[i, value]])));
  const worth = (/** @type {number} */ value) => valueText(value, run.isChance);
  const title = `${run.unit === "points" ? "Expected final score" : worthName(run)}, move by move`;
  byId("course-title").textContent = title;
  byId("course-chart").replaceChildren(chart({
    label: points.length === 0 ? title : `${title}: from ${worth(points[0][1])} to ${worth(points[points.length - 1][1])} in ${points.length - 1} moves.`,
    across: "moves", lines: [{ name: title, points }], isChance: run.isChance, text: (value) => axisText(value, run.isChance),
  }));
  if (!byId("course-moves").open) return;
  const rows = past.flatMap((step, i) => {
    if (step.move === undefined) return [];
    const before = past[i - 1];
    const best = before.answer?.moves ? bestOf(before.answer).join(", ") : "";
    const loss = game.loss(i);
    return [element("tr", {}, element("td", {}, String(i)), element("td", {}, boards.toText(before.board, game.size)), element("td", {}, step.move),
      element("td", {}, best), element("td", { class: loss ? "loses" : "" }, loss === undefined ? "–" : lossText(loss, run.isChance)))];
  });
  byId("course-table").replaceChildren(...rows.reverse());
}

/** Saves a game as a file. @param {Game} game */
export async function exportGame(game) {
  try {
    const { record } = await import("./record.js");
    const file = URL.createObjectURL(new Blob([`${record(game)}\n`], { type: "application/json" }));
    const link = element("a", { href: file, download: "game.jsonl" });
    link.click();
    URL.revokeObjectURL(file);
  } catch (error) {
    tell(/** @type {Error} */ (error).message, "error");
  }
}

/** Opens a game from a file. @param {Event} event @param {boards.Size[]} sizes of the boards that the run knows
 * @param {(game: Game) => void} open */
export async function importGame(event, sizes, open) {
  const input = /** @type {HTMLInputElement} */ (event.target);
  const file = input.files?.[0];
  if (!file) return;
  try {
    const { read } = await import("./record.js");
    const imported = read(await file.text(), sizes);
    imported.at = imported.steps.length - 1;
    open(imported);
    tell(`A game of ${count(imported.steps.length - 1)} moves. Use Undo to step back through it.`);
  } catch (error) {
    tell(/** @type {Error} */ (error).message, "error");
  }
  input.value = "";
}
