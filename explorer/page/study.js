// The Study view: interesting positions, search by pattern, ends of perfect games, layers.

import { Refused, ask } from "./api.js";
import { parseBoard } from "./board.js";
import { chart } from "./chart.js";
import { byId, element } from "./dom.js";
import { smallBoard } from "./grid.js";
import { axisText, count, percent, valueText } from "./numbers.js";
import { showPerfectPlay } from "./perfect.js";

/** Number of layers whose values are sampled. */
const LAYERS = 32;

/** Number of states sampled in each layer. */
const SAMPLE = 200;

/** Codes of failures that end when the server returns. */
const PASSING = ["AWAY", "UNAVAILABLE"];

/** @type {any} */
let run;
let isSolved = false;
/** @type {(board: number[]) => void} */
let openInPlay = () => {};
let seed = 0;
/** A search; `from` is the place to resume. @typedef {{layer: string, pattern: string, from?: string}} Search */
/** The search that “More” resumes. @type {Search | null} */
let goingOn = null;
/** Cancels the requests of a part of the page. The key is the id of the part's note.
 * @type {Map<string, AbortController>} */
const asking = new Map();
/** Fills a part that stayed empty because the server was away. The key is the id of the part's note.
 * @type {Map<string, () => void>} */
const failed = new Map();

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
    byId("found").replaceChildren();
    byId("more").hidden = true;
    search({ layer: byId("search-layer").value, pattern: byId("pattern").value });
  };
  byId("more").onclick = () => goingOn && search(goingOn);
}

/** Shows a run. For the same run, repeats the requests that the server did not answer. @param {any} opened */
export function openRun(opened) {
  const isSolvedNow = opened.not_solved === null;
  if (run === opened && isSolved === isSolvedNow) {
    for (const again of [...failed.values()]) again();
    return;
  }
  [run, isSolved] = [opened, isSolvedNow];
  for (const controller of asking.values()) controller.abort();
  failed.clear();
  for (const [id, layer] of [["from-layer", run.first_layer], ["to-layer", run.last_layer]]) byId(id).value = String(layer);
  const middle = Math.floor((run.first_layer + run.last_layer) / 4) * 2;
  byId("search-layer").value = String(Math.min(middle, 96));
  byId("pattern").value = firstPattern(run.size);
  // In a run with best moves, the losses of moves are unknown.
  const kinds = byId("kind");
  for (const option of kinds.options) option.disabled = run.best_moves && option.value !== "any";
  if (kinds.selectedOptions[0].disabled) kinds.value = "any";
  for (const id of ["positions", "found"]) byId(id).replaceChildren();
  byId("search-note").textContent = "";
  byId("more").hidden = true;
  findPositions();
  fill("value-note", showLayers);
  fill("perfect-note", (signal) => showPerfectPlay(run, signal));
}

/** A pattern with a 16 in the first playable cell. @param {import("./board.js").Size} size */
function firstPattern({ columns, stones }) {
  const cells = [...stones].map((symbol) => (symbol === "." ? "*" : symbol));
  cells[stones.indexOf(".")] = "16";
  const rows = Array.from({ length: cells.length / columns }, (_, r) => cells.slice(r * columns, (r + 1) * columns));
  return rows.map((row) => row.join(" ")).join(" / ");
}

/**
 * Fills a part of the page and cancels the part's earlier requests. The part's note shows a failure.
 * @param {string} note @param {(signal: AbortSignal) => Promise<void>} part
 */
async function fill(note, part) {
  asking.get(note)?.abort();
  failed.delete(note);
  const controller = new AbortController();
  asking.set(note, controller);
  try {
    await part(controller.signal);
  } catch (error) {
    if (controller.signal.aborted) return;
    byId(note).textContent = /** @type {Error} */ (error).message;
    if (error instanceof Refused && PASSING.includes(error.code)) failed.set(note, () => fill(note, part));
  }
}

/** A board that opens in Play, with lines of text below. @param {string} text @param {string[]} lines */
function card(text, lines) {
  const board = parseBoard(text, run.size);
  const button = element("button", { type: "button", title: "Open in Play" }, smallBoard(board, run.size), ...lines.map((line) => element("span", {}, line)));
  button.onclick = () => openInPlay(board);
  return element("li", {}, button);
}

function findPositions() {
  return fill("positions-note", async (signal) => {
    const note = byId("positions-note");
    const [first, last] = [byId("from-layer").value, byId("to-layer").value].map((text) => (text === "" ? undefined : text));
    const asked = { run: run.name, kind: byId("kind").value, first, last, limit: 12, seed };
    const found = await ask("positions", asked, signal);
    note.textContent = `From ${count(found.sampled)} states of ${found.layers.length} layers, tile sums ${found.layers[0]} to ${found.layers.at(-1)}.`;
    byId("positions").replaceChildren(...found.positions.map((/** @type {any} */ position) => {
      const best = position.moves.filter((/** @type {any} */ move) => move.best).map((/** @type {any} */ move) => move.move);
      const ahead = position.gap === null ? [] : [`ahead by ${valueText(position.gap, run.isChance)}, ${percent(position.share)}`];
      return card(position.board, [`Tile sum ${position.layer}. Best: ${best.join(", ")}`, ...ahead]);
    }));
    if (run.best_moves) note.textContent += " This run stores best moves and few values. The losses of the other moves are unknown, so positions cannot be ranked by them.";
  });
}

/** Starts or resumes a search. @param {Search} asked */
function search(asked) {
  return fill("search-note", async (signal) => {
    const [note, more] = [byId("search-note"), byId("more")];
    note.textContent = "Searching…";
    // A second press would find the same states again.
    more.disabled = true;
    const answer = ask("search", { run: run.name, ...asked, limit: 24 }, signal);
    const result = await answer.finally(() => (more.disabled = signal.aborted));
    byId("found").append(...result.states.map((/** @type {any} */ state) =>
      card(state.board, state.value === null ? [] : [`value ${valueText(state.value, run.isChance)}`])));
    goingOn = result.next === null ? null : { ...asked, from: result.next };
    more.hidden = goingOn === null;
    const found = byId("found").children.length;
    const rest = goingOn === null ? ", and no more in this layer." : " so far.";
    note.textContent = `${count(found)} ${found === 1 ? "state" : "states"} found${rest}`;
  });
}

/** @param {AbortSignal} signal */
async function showLayers(signal) {
  byId("value-chart").replaceChildren();
  byId("value-note").textContent = "";
  const { layers } = await ask("layers", { run: run.name }, signal);
  const points = (/** @type {"states" | "afterstates"} */ what) =>
    layers.map((/** @type {any} */ layer) => [layer.layer, layer[what]]);
  byId("layer-chart").replaceChildren(chart({
    label:
      `States and afterstates of ${layers.length} layers, on a logarithmic scale; the numbers are in the table below.`,
    across: "tile sum", isLog: true, text: count,
    lines: [{ name: "states", points: points("states") }, { name: "afterstates", points: points("afterstates") }],
  }));
  await showValues(layers, signal);
}

/** Shows the values of states of some layers. @param {any[]} layers @param {AbortSignal} signal */
async function showValues(layers, signal) {
  const step = Math.max(1, (layers.length - 1) / (LAYERS - 1));
  const wanted = Array.from({ length: LAYERS }, (_, i) => Math.min(Math.round(i * step), layers.length - 1));
  const chosen = [...new Set(wanted.map((i) => nearStored(layers, i)))];
  const isBare = run.best_moves || run.not_solved !== null;
  const rows = isBare ? layers : chosen.map((i) => layers[i]);
  showTable(rows);
  /** @type {any[]} */
  const answers = [];
  for (const layer of isBare ? [] : rows) answers.push(await valuesOf(layer, signal));
  const known = answers.filter((of) => typeof of.mean === "number");
  const line = (/** @type {string} */ name) => ({ name, points: known.map((of) => [of.layer, of[name]]) });
  byId("layer-values-title").hidden = byId("value-chart").hidden = known.length === 0;
  byId("value-chart").replaceChildren(chart({
    label: "Least, mean and largest values of states by layer; the numbers are in the table below.",
    across: "tile sum", isChance: run.isChance, text: (value) => axisText(value, run.isChance), lines: /** @type {any} */ ([line("least"), line("mean"), line("most")]),
  }));
  const notes = [];
  if (known.length > 0) notes.push(`Values of up to ${SAMPLE} states in each of ${known.length} layers.`);
  const others = answers.length - known.length;
  if (others > 0) {
    notes.push(`The run no longer stores the states of ${others} layers, so the table has only their counts.`);
  }
  byId("value-note").textContent = notes.join(" ");
  if (!isBare) showTable(answers);
}

/** The number of the next lower layer whose values are stored, from number `i` on; `i` if there is none.
 * @param {any[]} layers @param {number} i */
function nearStored(layers, i) {
  const stored = layers.slice(0, i + 1).findLastIndex((of) => of.stores_values);
  return stored < 0 ? i : stored;
}

/** Values of states of a layer. If the layer's reach was removed, returns only the counts of the layer. @param {any} layer
 * @param {AbortSignal} signal */
async function valuesOf(layer, signal) {
  try {
    return await ask("layer", { run: run.name, layer: layer.layer, sample: SAMPLE }, signal);
  } catch (error) {
    if (error instanceof Refused && error.code === "FAILED_PRECONDITION") return layer;
    throw error;
  }
}

/** Shows layers with their counts, and with their values if known. @param {any[]} layers */
function showTable(layers) {
  const text = (/** @type {any} */ value) => (typeof value === "number" ? valueText(value, run.isChance) : "–");
  byId("layer-table").replaceChildren(...layers.map((of) => {
    const counts = [of.layer, of.states, of.afterstates].map(count);
    const cells = [...counts, ...[of.least, of.mean, of.most].map(text)];
    return element("tr", {}, ...cells.map((cell) => element("td", {}, cell)));
  }));
}
