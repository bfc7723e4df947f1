// Ends of games under perfect play.

import { ask } from "./api.js";
import { chart } from "./chart.js";
import { byId, element } from "./dom.js";
import { axisText, count, percent, valueText } from "./numbers.js";

/** Milliseconds between requests for the server's progress. */
const LOOK_EVERY = 1_000;

/** Shares of all games. For each share, the page shows the tile sum by which this share of games has ended. */
const SHARES = [0.01, 0.1, 0.5, 0.9, 0.99];

/** Waits for the statistics of a run and shows them. Throws the server's refusal.
 * @param {any} run @param {AbortSignal} signal */
export async function showPerfectPlay(run, signal) {
  const note = byId("perfect-note");
  byId("perfect").hidden = true;
  note.textContent = "";
  for (;;) {
    const { progress, statistics } = await ask("perfect-play", { run: run.name }, signal);
    if (statistics !== null) return show(statistics);
    note.textContent =
      `The server computes how games end, once for this run: ${percent(progress)} done.`;
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY));
    if (signal.aborted) return;
  }
}

/** @param {any} statistics */
function show(statistics) {
  const share = (/** @type {number} */ value) => valueText(value, true);
  const { moves, last_layer: last } = statistics;
  byId("perfect-note").textContent =
    `On average, a game takes ${valueText(moves.value, false)} moves and ends with a tile sum of ${valueText(last.mean, false)} ` +
    `(standard deviation ${valueText(last.standard_deviation, false)}). Nothing is sampled: the server followed ` +
    `${count(statistics.states)} states, and the error of each share is at most ${statistics.left_out.toExponential(1)}.`;
  byId("perfect-tiles").replaceChildren(...statistics.tiles.map((/** @type {any} */ of) => element("tr", {},
    element("td", {}, count(of.tile)),
    element("td", {}, element("meter", { value: of.ended, "aria-hidden": "true" })),
    element("td", {}, share(of.ended)), element("td", {}, share(of.reached)))));
  const all = statistics.layers.reduce((/** @type {number} */ sum, /** @type {any} */ of) => sum + of.ended, 0);
  let ended = 0;
  const points = statistics.layers.map((/** @type {any} */ of) => [of.layer, (ended += of.ended) / all]);
  const by = (/** @type {number} */ part) => points.find((/** @type {number[]} */ [, share]) => share >= part)[0];
  byId("perfect-chart").replaceChildren(chart({
    label: `Share of games that have ended, by tile sum: ${SHARES.map((part) => `${percent(part)} by ${by(part)}`).join(", ")}.`,
    across: "games that have ended, by tile sum", isChance: true, text: (value) => axisText(value, true), lines: [{ name: "ended", points }],
  }));
  byId("perfect-ends").textContent = `Games that have ended: ${SHARES.map((part) => `${percent(part)} by tile sum ${count(by(part))}`).join(", ")}.`;
  byId("perfect").hidden = false;
}
