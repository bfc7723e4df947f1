// Sends requests with the token, retries them while the server is busy, and detects an unreachable server.

import { byId } from "./dom.js";

const TOKEN = "exact2048-token";

/** Default time limit of an answer, and the wait after it, in seconds. */
const [USUAL_SECONDS, GRACE_SECONDS] = [30, 5];

/** Interval in milliseconds between checks of an unreachable server. */
const LOOK_EVERY = 1_500;

/** Maximum number of attempts of a request while the server is busy. */
const TRIES = 4;

/** Pattern of a valid token. A header cannot contain other characters, such as copied curly quotes. */
const SENDABLE = /^[!-~]+$/;

/** Error with the reason why a request got no answer. */
export class Refused extends Error {
  /** @param {string} code @param {string} message @param {number} [seconds] */
  constructor(code, message, seconds) {
    super(message);
    this.code = code;
    /** Estimated time of the answer, if it exceeds the time limit. */
    this.seconds = seconds;
  }
}

let looking = 0;
/** @type {(() => void)[]} */
const whenBack = [];

/** Registers a function to call each time the server is reachable again. @param {() => void} call */
export function onceBack(call) {
  whenBack.push(call);
}

/**
 * Sends a request to the API and returns the answer.
 * @param {string} path @param {Record<string, string | number | boolean | undefined>} [asked] @param {AbortSignal} [signal]
 * @param {number} [seconds] Time limit of the answer.
 * @returns {Promise<any>}
 */
export async function ask(path, asked = {}, signal, seconds = USUAL_SECONDS) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(asked)) if (value !== undefined) query.set(key, String(value));
  const url = `api/v1/${path}?${query}`;
  for (let tries = 1; ; tries++) {
    const { answer, body } = await send(url, signal, seconds);
    if (answer.status === 401) {
      await askForToken(sessionStorage.getItem(TOKEN) !== null);
      continue;
    }
    // If a retry can help, the server states when to retry.
    if (answer.headers.has("retry-after") && tries < TRIES) {
      await pause(250 * 2 ** tries);
      continue;
    }
    if (answer.ok) return body;
    const { code = "", message = `The server answered ${answer.status}.`, seconds: estimate } = body.error ?? {};
    throw new Refused(code, message, estimate);
  }
}

/** Fetches an answer's head and its parsed body.
 * @param {string} url @param {AbortSignal | undefined} signal @param {number} seconds */
async function send(url, signal, seconds) {
  const token = sessionStorage.getItem(TOKEN);
  const limit = AbortSignal.timeout(1000 * (seconds + GRACE_SECONDS));
  // An invalid request does not mean that the server is unreachable.
  const headers = new Headers(token === null ? {} : { authorization: `Bearer ${token}` });
  headers.set("grpc-timeout", `${seconds}S`);
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

/** Shows that the server is unreachable, and checks it until it answers. */
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

/** Asks the user for the token. All requests wait for the same dialog. @param {boolean} wasWrong */
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
