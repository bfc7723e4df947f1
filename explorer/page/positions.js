// Positions drawn from a run.

import { ask } from "./api.js";

/** Number of positions fetched at once. */
const AT_ONCE = 40;

/** Positions that were fetched and not drawn yet, by run. @type {WeakMap<any, any[]>} */
const fetched = new WeakMap();

/** Draws a position with several moves; `undefined` if there is none. @param {any} run @param {AbortSignal} signal */
export async function drawPosition(run, signal) {
  let waiting = fetched.get(run) ?? [];
  if (waiting.length === 0) {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const found = await ask("positions", { run: run.name, kind: "any", sample: 400, limit: AT_ONCE, seed }, signal);
    waiting = found.positions;
    waiting.sort(() => Math.random() - 0.5);
    fetched.set(run, waiting);
  }
  return waiting.pop();
}
