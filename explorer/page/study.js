// Studying a run: positions worth a look, search by pattern, how perfect games end, layers.

import { ask } from "./api.js";
import { parseBoard } from "./board.js";
import { chart } from "./chart.js";
import { byId, element } from "./dom.js";
import { smallBoard } from "./grid.js";
import { axisText, count, percent, valueText } from "./numbers.js";
import { showPerfectPlay } from "./perfect.js";

/** Layers whose values are looked at. */
const LAYERS = 32;

/** States of each. */
const SAMPLE = 200;

/** @type {any} */
let run;
/** @type {(board: number[]) => void} */
let openInPlay = () => {};
let seed = 0;
/** Where the search goes on. @type {string | undefined} */
let from;
let asking = new AbortController();

/** Sets the forms up. @param {(board: number[]) => void} open */
export function setUp(open) {
  openInPlay = open;
  byId("positions-form").onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    findPositions();
  };
  byId("other-sample").onclick = () => {
    seed += 1;
    findPositions();
  };
  byId("search-form").onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    from = undefined;
    byId("found").replaceChildren();
    search();
  };
  byId("more").onclick = search;
}

/** Shows a run. @param {any} opened */
export function openRun(opened) {
  if (run === opened) return;
  run = opened;
  asking.abort();
  asking = new AbortController();
  for (const [id, layer] of [["from-layer", run.first_layer], ["to-layer", run.last_layer]]) byId(id).value = String(layer);
  const middle = Math.floor((run.first_layer + run.last_layer) / 4) * 2;
  byId("search-layer").value = String(Math.min(middle, 96));
  const open = Array.from({ length: run.size.rows }, () => Array(run.size.columns).fill("*"));
  open[0][0] = "16";
  byId("pattern").value = open.map((row) => row.join(" ")).join(" / ");
  // What moves lose is not known of a run of best moves.
  const kinds = byId("kind");
  for (const option of kinds.options) option.disabled = run.best_moves && option.value !== "any";
  if (kinds.selectedOptions[0].disabled) kinds.value = "any";
  for (const id of ["positions", "found"]) byId(id).replaceChildren();
  byId("search-note").textContent = "";
  byId("more").hidden = true;
  findPositions();
  showLayers(asking.signal);
  showPerfectPlay(run, asking.signal);
}

/** A board that opens in Play, with some lines below. @param {string} text @param {string[]} lines */
function card(text, lines) {
  const board = parseBoard(text, run.size);
  const button = element("button", { type: "button", title: "Open in Play" }, smallBoard(board, run.size), ...lines.map((line) => element("span", {}, line)));
  button.onclick = () => openInPlay(board);
  return element("li", {}, button);
}

async function findPositions() {
  const note = byId("positions-note");
  try {
    const [first, last] = [byId("from-layer").value, byId("to-layer").value].map((text) => (text === "" ? undefined : text));
    const told = await ask("positions", { run: run.name, kind: byId("kind").value, first, last, limit: 12, seed }, asking.signal);
    note.textContent = `Among ${count(told.sampled)} states of ${told.layers.length} layers, tile sums ${told.layers[0]} to ${told.layers.at(-1)}.`;
    byId("positions").replaceChildren(...told.positions.map((/** @type {any} */ position) => {
      const best = position.moves.filter((/** @type {any} */ move) => move.best).map((/** @type {any} */ move) => move.move);
      const ahead = position.gap === null ? [] : [`ahead by ${valueText(position.gap, run.isChance)}, ${percent(position.share)}`];
      return card(position.board, [`Tile sum ${position.layer}. Best: ${best.join(", ")}`, ...ahead]);
    }));
    if (run.best_moves) note.textContent += " This run stores best moves and few values: what the other moves lose is not known, so none are picked by it.";
  } catch (error) {
    if (!asking.signal.aborted) note.textContent = /** @type {Error} */ (error).message;
  }
}

async function search() {
  const note = byId("search-note");
  note.textContent = "Searching…";
  try {
    const [layer, pattern] = [byId("search-layer").value, byId("pattern").value];
    const told = await ask("search", { run: run.name, layer, pattern, limit: 24, from }, asking.signal);
    byId("found").append(...told.states.map((/** @type {any} */ state) =>
      card(state.board, state.value === null ? [] : [`worth ${valueText(state.value, run.isChance)}`])));
    from = told.next ?? undefined;
    byId("more").hidden = from === undefined;
    const found = byId("found").children.length;
    note.textContent = `${count(found)} ${found === 1 ? "state" : "states"} found${from === undefined ? ", and no more in this layer." : " so far."}`;
  } catch (error) {
    if (!asking.signal.aborted) note.textContent = /** @type {Error} */ (error).message;
  }
}

/** @param {AbortSignal} signal */
async function showLayers(signal) {
  byId("value-chart").replaceChildren();
  try {
    const { layers } = await ask("layers", { run: run.name }, signal);
    const points = (/** @type {"states" | "afterstates"} */ what) => layers.map((/** @type {any} */ layer) => [layer.layer, layer[what]]);
    byId("layer-chart").replaceChildren(chart({
      label: `States and afterstates of ${layers.length} layers, on a logarithmic scale; the numbers are in the table below.`,
      across: "tile sum", isLog: true, text: count,
      lines: [{ name: "states", points: points("states") }, { name: "afterstates", points: points("afterstates") }],
    }));
    await showValues(layers, signal);
  } catch (error) {
    if (!signal.aborted) byId("value-note").textContent = /** @type {Error} */ (error).message;
  }
}

/** Shows what states of some layers are worth. @param {any[]} layers @param {AbortSignal} signal */
async function showValues(layers, signal) {
  const step = Math.max(1, (layers.length - 1) / (LAYERS - 1));
  const chosen = [...new Set(Array.from({ length: LAYERS }, (_, i) => Math.round(i * step)))].filter((i) => i < layers.length);
  /** @type {any[]} */
  const told = [];
  const isBare = run.best_moves || run.not_solved;
  for (const i of isBare ? [] : chosen) {
    told.push(await ask("layer", { run: run.name, layer: layers[i].layer, sample: SAMPLE }, signal));
  }
  const line = (/** @type {string} */ name) => ({ name, points: told.filter((of) => of[name] !== null).map((of) => [of.layer, of[name]]) });
  byId("layer-values-title").hidden = byId("value-chart").hidden = isBare;
  const text = (/** @type {number | null} */ value) => (value === null ? "–" : valueText(value, run.isChance));
  byId("value-chart").replaceChildren(chart({
    label: "Least, mean and largest values of states by layer; the numbers are in the table below.",
    across: "tile sum", text: (value) => axisText(value, run.isChance), lines: /** @type {any} */ ([line("least"), line("mean"), line("most")]),
  }));
  byId("value-note").textContent = isBare ? "" : `Values of up to ${SAMPLE} states of each of ${told.length} layers.`;
  byId("layer-table").replaceChildren(...(isBare ? layers : told).map((of) => element("tr", {},
    ...[count(of.layer), count(of.states), count(of.afterstates), text(of.least ?? null), text(of.mean ?? null), text(of.most ?? null)].map((cell) => element("td", {}, cell)))));
}
