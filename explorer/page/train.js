// The trainer: values appear after the move. It shows how good the last move was, and the worst mistakes of the game. The
// page loads this file when a user first trains.

import { bestOf } from "./course.js";
import { byId, element } from "./dom.js";
import { lossOf } from "./game.js";
import { smallBoard } from "./grid.js";
import { lossText, percent, valueText } from "./numbers.js";

/** @typedef {import("./game.js").Game} Game */

/** Number of mistakes in the list. */
const MISTAKES = 6;

/**
 * A move of the game. `ratio` is its value as a share of the best one, and `loss` the difference.
 * @typedef {{at: number, move: import("./board.js").Move, answer: any, ratio: number, loss: number}} Judged
 */

/** The moves of the game that have values. @param {any} run @param {Game} game @returns {Judged[]} */
function judge(run, game) {
  return game.past.flatMap(({ move }, at) => {
    const answer = game.steps[at - 1]?.answer;
    if (move === undefined || !answer?.moves) return [];
    const made = answer.moves.find((/** @type {any} */ other) => other.move === move);
    const loss = made?.may_be_best ? 0 : lossOf(answer.moves, move);
    return loss === undefined ? [] : [{ at, move, answer, loss, ratio: loss === 0 ? 1 : ratioOf(run, answer, made.value) }];
  });
}

/**
 * A value as a share of the best one, from 0 to 1. If less is better, the chances of the opposite are compared.
 * @param {any} run @param {any} answer @param {number} value
 */
function ratioOf(run, answer, value) {
  const best = answer.moves.find((/** @type {any} */ move) => move.best).value;
  return run.less_is_better ? (1 - value) / (1 - best) : value / best;
}

/** Lengths of the last and of the longest row of best moves. @param {Judged[]} judged */
function streaks(judged) {
  let [last, longest] = [0, 0];
  for (const { loss } of judged) {
    last = loss === 0 ? last + 1 : 0;
    longest = Math.max(longest, last);
  }
  return { last, longest };
}

/** Shows the last move and the whole game. @param {any} run @param {Game} game @param {(at: number) => void} goTo shows
 * the board before a step */
export function showTraining(run, game, goTo) {
  const judged = judge(run, game);
  const made = judged.at(-1)?.at === game.at ? judged.at(-1) : undefined;
  const { answer } = game.now;
  const waiting = answer?.refused ?? "Make a move. Its value and those of the other moves appear then.";
  byId("train-last").textContent = made ? inWords(run, made) : waiting;
  byId("train-table").hidden = made === undefined;
  byId("train-moves").replaceChildren(...(made?.answer.moves ?? []).map((/** @type {any} */ move) => {
    const loss = lossOf(made?.answer.moves, move.move);
    return element("tr", { class: move.best ? "best" : move.legal ? "" : "illegal" },
      element("td", {}, move.move, ...(move.move === made?.move ? [element("span", { class: "badge" }, "yours")] : [])),
      element("td", {}, move.legal ? valueText(move.value, run.isChance) : "not legal"),
      element("td", { class: loss ? "loses" : "" }, loss === undefined ? "" : lossText(loss, run.isChance)));
  }));
  const right = judged.filter(({ loss }) => loss === 0).length;
  const { last, longest } = streaks(judged);
  byId("train-right").textContent = judged.length === 0 ? "–" : `${right} of ${judged.length}, ${percent(right / judged.length)}`;
  byId("train-streak").textContent = `${last}, longest ${longest}`;
  byId("train-kept").textContent = judged.length === 0 ? "–" : ratioText(judged.reduce((all, { ratio }) => all * ratio, 1));
  const mistakes = judged.filter(({ loss }) => loss > 0).sort((a, b) => a.ratio - b.ratio).slice(0, MISTAKES);
  byId("train-none").hidden = mistakes.length > 0;
  byId("train-mistakes").replaceChildren(...mistakes.map((mistake) => {
    const { at, move, answer, ratio } = mistake;
    const lines = [`Move ${at}: ${move}, ${ratioText(ratio)}`, `Best: ${bestOf(answer).join(" or ")}`];
    const button = element("button", { type: "button", title: "Show this board again" },
      smallBoard(game.steps[at - 1].board, game.size), ...lines.map((line) => element("span", {}, line)));
    button.onclick = () => goTo(at - 1);
    return element("li", {}, button);
  }));
}

/** @param {any} run @param {Judged} made */
function inWords(run, { move, answer, ratio, loss }) {
  const best = bestOf(answer);
  if (loss === 0) return best.length > 1 ? `${move} is one of the best moves.` : `${move} is the best move.`;
  return `${move} has ${ratioText(ratio)} of the best value and loses ${valueText(loss, run.isChance)}. ${best.join(" or ")} is best.`;
}

/** A share with enough digits to differ from 1. @param {number} ratio */
function ratioText(ratio) {
  if (ratio === 1) return "100%";
  const digits = Math.min(8, Math.max(1, Math.ceil(-Math.log10(1 - ratio)) - 1));
  return `${(100 * ratio).toFixed(digits)}%`;
}
