// How games of perfect play end.

import { ask } from "./api.js";
import { chart } from "./chart.js";
import { byId, element } from "./dom.js";
import { axisText, count, percent, valueText } from "./numbers.js";

/** How often it is asked how far the server is, in milliseconds. */
const LOOK_EVERY = 1_000;

/** Shares of all games, for which it is said by which tile sum they have ended. */
const SHARES = [0.01, 0.1, 0.5, 0.9, 0.99];

/** Shows how games of a run end, when that is known; an error says why it is not.
 * @param {any} run @param {AbortSignal} signal */
export async function showPerfectPlay(run, signal) {
  const note = byId("perfect-note");
  byId("perfect").hidden = true;
  note.textContent = "";
  for (;;) {
    const { progress, statistics } = await ask("perfect-play", { run: run.name }, signal);
    if (statistics !== null) return show(statistics);
    note.textContent =
      `Every game is followed, which takes the server a while, once for this run: ${percent(progress)} are done.`;
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY));
    if (signal.aborted) return;
  }
}

/** @param {any} told */
function show(told) {
  const share = (/** @type {number} */ value) => valueText(value, true);
  const { moves, last_layer: last } = told;
  byId("perfect-note").textContent =
    `In the mean a game takes ${valueText(moves.value, false)} moves and ends with a tile sum of ${valueText(last.mean, false)}, ` +
    `with a standard deviation of ${valueText(last.standard_deviation, false)}. Nothing is sampled: ` +
    `${count(told.states)} states were followed, and no share is off by more than ${told.left_out.toExponential(1)}.`;
  byId("perfect-tiles").replaceChildren(...told.tiles.map((/** @type {any} */ of) => element("tr", {},
    element("td", {}, count(of.tile)),
    element("td", {}, element("meter", { value: of.ended, "aria-hidden": "true" })),
    element("td", {}, share(of.ended)), element("td", {}, share(of.reached)))));
  const all = told.layers.reduce((/** @type {number} */ sum, /** @type {any} */ of) => sum + of.ended, 0);
  let ended = 0;
  const points = told.layers.map((/** @type {any} */ of) => [of.layer, (ended += of.ended) / all]);
  const by = (/** @type {number} */ part) => points.find((/** @type {number[]} */ [, share]) => share >= part)[0];
  byId("perfect-chart").replaceChildren(chart({
    label: `The share of games that have ended, by tile sum: ${SHARES.map((part) => `${percent(part)} by ${by(part)}`).join(", ")}.`,
    across: "games that have ended, by tile sum", text: (value) => axisText(value, true), lines: [{ name: "ended", points }],
  }));
  byId("perfect-ends").textContent = `Games that have ended: ${SHARES.map((part) => `${percent(part)} by tile sum ${count(by(part))}`).join(", ")}.`;
  byId("perfect").hidden = false;
}
