// Requests to the server: with the token, retried while the server is busy, and detecting an unreachable server.

import { byId } from "./dom.js";

const TOKEN = "exact2048-token";

/** Time for an answer, in milliseconds: a little more than the server's own limit. */
const PATIENCE = 35_000;

/** How often a server that is away is looked for. */
const LOOK_EVERY = 1_500;

/** Tries of a request that the server is too busy for. */
const TRIES = 4;

/** What a token can be: no header holds other characters, as curly quotes that come along where one is copied. */
const SENDABLE = /^[!-~]+$/;

/** Why there is no answer. */
export class Refused extends Error {
  /** @param {string} code @param {string} message */
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

let looking = 0;
/** @type {(() => void)[]} */
const whenBack = [];

/** Calls something each time that the server is there again. @param {() => void} call */
export function onceBack(call) {
  whenBack.push(call);
}

/**
 * Asks the API.
 * @param {string} path @param {Record<string, string | number | boolean | undefined>} [asked] @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function ask(path, asked = {}, signal) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(asked)) if (value !== undefined) query.set(key, String(value));
  const url = `api/v1/${path}?${query}`;
  for (let tries = 1; ; tries++) {
    const { answer, body } = await send(url, signal);
    if (answer.status === 401) {
      await askForToken(sessionStorage.getItem(TOKEN) !== null);
      continue;
    }
    // If a retry can help, the server says when.
    if (answer.headers.has("retry-after") && tries < TRIES) {
      await pause(250 * 2 ** tries);
      continue;
    }
    if (answer.ok) return body;
    throw new Refused(body.error?.code ?? "", body.error?.message ?? `The server answered ${answer.status}.`);
  }
}

/** Fetches an answer's head and its parsed body. @param {string} url @param {AbortSignal} [signal] */
async function send(url, signal) {
  const token = sessionStorage.getItem(TOKEN);
  const limit = AbortSignal.timeout(PATIENCE);
  // An invalid request does not mean that the server is unreachable.
  const headers = new Headers(token === null ? {} : { authorization: `Bearer ${token}` });
  try {
    const answer = await fetch(url, { headers, signal: signal ? AbortSignal.any([signal, limit]) : limit });
    // A truncated answer has no body; the status suffices to report a failure.
    const body = await (answer.ok ? answer.json() : answer.json().catch(() => ({})));
    isThere();
    return { answer, body };
  } catch (error) {
    if (signal?.aborted) throw error;
    isAway();
    throw new Refused("AWAY", "The server does not answer.");
  }
}

/** Says that the server is away, and looks for it until it is back. */
function isAway() {
  byId("away").hidden = false;
  looking ||= window.setInterval(() => {
    fetch("icon.svg", { cache: "no-store", signal: AbortSignal.timeout(LOOK_EVERY) }).then(isThere, () => {});
  }, LOOK_EVERY);
}

function isThere() {
  if (!looking) return;
  window.clearInterval(looking);
  looking = 0;
  byId("away").hidden = true;
  for (const call of whenBack) call();
}

/** @type {Promise<void> | undefined} */
let asking;

/** Has somebody write the token; all requests wait for it together. @param {boolean} wasWrong */
function askForToken(wasWrong) {
  asking ??= new Promise((resolve) => {
    const dialog = byId("token-dialog");
    byId("token-wrong").hidden = !wasWrong;
    dialog.onclose = () => {
      const token = byId("token").value.trim();
      if (!SENDABLE.test(token)) {
        byId("token-wrong").hidden = false;
        dialog.showModal();
        return;
      }
      sessionStorage.setItem(TOKEN, token);
      asking = undefined;
      resolve();
    };
    dialog.showModal();
  });
  return asking;
}

/** @param {number} milliseconds */
function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
