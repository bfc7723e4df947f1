// Shows the state of the cluster and polls for it. The page only reads from the coordinator.

import { ask, onceBack } from "./api.js";
import { byId, element, svg, tell } from "./dom.js";
import { about, count, rate, share, size } from "./numbers.js";

/** Interval between polls, in milliseconds, for few jobs. It grows with the jobs, because an answer names them all. */
const EVERY = 2_000;
const FEW_JOBS = 500;

/** Jobs and workers that are shown at most. */
const JOBS_SHOWN = 100;
const WORKERS_SHOWN = 1_000;

/** Rates that are remembered of a job. */
const RATES = 90;

/**
 * A job and a worker, as far as they are shown: what `exact2048 status --json` prints.
 * @typedef {{job: string, state: string, failure?: string, cancelling: boolean, checking: boolean, trouble: string,
 *   board: string, objective: string, phase: string | null, layer: number | null, last_layer: number | null,
 *   states: number, states_total: number | null, states_per_second: number, done: number,
 *   eta_seconds: number | null, job_eta_seconds: number | null, bytes: number, bytes_on_disk?: number, peak_disk_bytes?: number, disk_limit_bytes?: number,
 *   retries: number, worker_count: number, fingerprint?: string}} Job
 * @typedef {{worker: string, address: string, threads: number, memory_bytes: number, activity: string, job?: string,
 *   first_layer?: number, last_layer?: number, reason?: string, backoff_seconds?: number,
 *   silent_seconds: number}} Worker
 */

/** The rates of each job in its pass. @type {Map<string, {phase: string | null, rates: number[]}>} */
const seen = new Map();

let timer = 0;

async function look() {
  window.clearTimeout(timer);
  let pause = EVERY;
  try {
    /** @type {{jobs: Job[], workers: Worker[]}} */
    const { jobs, workers } = await ask("status");
    tell("");
    show(jobs, workers);
    pause *= Math.max(1, Math.ceil(jobs.length / FEW_JOBS));
  } catch (error) {
    // The page shows an unreachable coordinator in a separate line.
    if (/** @type {{code?: string}} */ (error).code !== "AWAY") tell(String(/** @type {Error} */ (error).message), "error");
  }
  window.clearTimeout(timer);
  // A hidden page does not poll.
  if (!document.hidden) timer = window.setTimeout(look, pause);
}

/** @param {Job[]} jobs @param {Worker[]} workers */
function show(jobs, workers) {
  jobs.forEach(remember);
  for (const name of seen.keys()) if (!jobs.some((job) => job.job === name)) seen.delete(name);
  const running = jobs.filter((job) => job.state === "running");
  const inOrder = [...running, ...jobs.filter((job) => job.state !== "running")];
  byId("summary").textContent = `${several(jobs.length, "job")}, ${running.length} running; ${several(workers.length, "worker")}`;
  const hasIdle = workers.some((worker) => worker.activity === "waiting");
  byId("jobs").replaceChildren(...inOrder.slice(0, JOBS_SHOWN).map((job) => ofJob(job, hasIdle)));
  byId("no-jobs").hidden = jobs.length > 0;
  const more = jobs.length - JOBS_SHOWN;
  byId("more-jobs").hidden = more <= 0;
  byId("more-jobs").textContent = `and ${several(more, "more job")}`;
  byId("workers").replaceChildren(...workers.slice(0, WORKERS_SHOWN).map(ofWorker));
  byId("no-workers").hidden = workers.length > 0;
  byId("workers-table").hidden = workers.length === 0;
}

/** @param {Job} job */
function remember(job) {
  const before = seen.get(job.job);
  const rates = before !== undefined && before.phase === job.phase ? before.rates : [];
  seen.set(job.job, { phase: job.phase, rates: [...rates, job.states_per_second].slice(-RATES) });
}

/** @param {Job} job @param {boolean} hasIdle whether a worker waits for work */
function ofJob(job, hasIdle) {
  const trouble = job.trouble || job.failure || "";
  const state = stateOf(job, hasIdle);
  const title = element("div", { class: "title" },
    element("h3", {}, job.job),
    element("span", { class: ["failed", "stuck"].includes(state) ? "state bad" : "state" }, state),
    element("span", { class: "soft" }, `${job.board}, ${job.objective}`),
    element("span", { class: "share" }, progressOf(job)));
  const bar = element("progress", { value: job.done, max: 1, "aria-label": `Part of the pass that is done: ${share(job.done)}` });
  const children = [title, bar, element("dl", { class: "facts" }, ...factsOf(job))];
  if (trouble !== "") children.push(element("p", { class: "error" }, trouble));
  return element("li", { class: "job" }, ...children);
}

/** The share of the pass that is done; of a running job also the time left. @param {Job} job */
function progressOf(job) {
  if (job.phase === null) return share(job.done);
  const done = `${share(job.done)} of the ${job.phase === "enumerate" ? "upward" : "downward"} pass`;
  if (job.state !== "running") return done;
  const [pass, whole] = [job.eta_seconds, job.job_eta_seconds];
  if (pass === null || whole === null) return `${done}, time left unknown`;
  return whole - pass < 1 ? `${done}, ${about(whole)}` : `${done}, ${about(pass)}; whole job ${about(whole)}`;
}

/**
 * What the run of a job takes.
 * @param {Job} job @returns {[string, string]}
 */
function taken(job) {
  if (job.bytes_on_disk === undefined) return ["Written", size(job.bytes)];
  const limit = job.disk_limit_bytes ?? 0;
  const [now, most, all] = [job.bytes_on_disk, job.peak_disk_bytes ?? 0, limit].map((bytes) => size(bytes, limit));
  return ["Disk", `${now}, peak ${most} of ${all}`];
}

/** @param {Job} job */
function factsOf(job) {
  const isRunning = job.state === "running";
  const total = job.states_total === null ? "" : ` of ${count(job.states_total)}`;
  /** @type {[string, Node | string][]} */
  const facts = [];
  if (isRunning && job.layer !== null) facts.push(["Layer", `${count(job.layer)} of ${count(job.last_layer ?? 0)}`]);
  if (isRunning) facts.push(["Rate", rateOf(job)]);
  facts.push(["States", count(job.states) + total], taken(job));
  if (isRunning) facts.push(["Workers", count(job.worker_count)]);
  if (job.retries > 0) facts.push(["Retries", count(job.retries)]);
  if (job.fingerprint) facts.push(["Fingerprint", job.fingerprint]);
  return facts.map(([name, what]) => element("div", {}, element("dt", {}, name), element("dd", {}, what)));
}

/** How fast a job is, with a line of how fast it was. @param {Job} job */
function rateOf(job) {
  const rates = seen.get(job.job)?.rates ?? [];
  const largest = Math.max(...rates, 1);
  const points = rates.map((each, at) => `${at},${(20 - (18 * each) / largest).toFixed(1)}`).join(" ");
  const line = svg("svg", { viewBox: `0 0 ${Math.max(rates.length - 1, 1)} 21`, preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("polyline", { points }));
  return element("span", { class: "rate" }, rate(job.states_per_second), ...(rates.length > 1 ? [line] : []));
}

/** @param {Job} job @param {boolean} hasIdle whether a worker waits for work */
function stateOf(job, hasIdle) {
  if (job.cancelling) return "cancelling";
  if (job.checking) return "checking";
  if (job.state === "running" && job.trouble !== "") return "stuck";
  if (job.state === "running" && job.worker_count === 0) return hasIdle ? "starting" : "waiting for workers";
  return job.state;
}

/** @param {Worker} worker */
function ofWorker(worker) {
  const cell = (/** @type {string} */ name, /** @type {string} */ text, kind = "") =>
    element("td", { "data-name": name, class: kind }, element("span", {}, text));
  return element("tr", {},
    cell("Worker", worker.worker),
    cell("Doing", doing(worker)),
    cell("Address", worker.address),
    cell("Threads", count(worker.threads), "number"),
    cell("Memory", size(worker.memory_bytes, worker.memory_bytes), "number"),
    cell("Heard", `${about(worker.silent_seconds)} ago`, "number"));
}

/** @param {Worker} worker */
function doing(worker) {
  const { first_layer: first, last_layer: last } = worker;
  const isOne = last === undefined || first === last;
  const layers = first === undefined ? "some layers" : isOne ? `layer ${count(first)}` : `layers ${count(first)} to ${count(last)}`;
  switch (worker.activity) {
    case "working": return `${worker.job}: ${layers}`;
    case "writing": return `${worker.job}: writing ${layers}`;
    case "waiting": return "waiting for work";
    case "unwell": return `cannot work: ${worker.reason}`;
    case "backing_off": return `has failed, gets work again in ${about(Math.ceil(worker.backoff_seconds ?? 0))}`;
    case "too_small": return "its memory is too small for the job";
    default: return worker.activity;
  }
}

/** @param {number} number @param {string} noun */
function several(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

onceBack(look);
document.addEventListener("visibilitychange", () => { if (!document.hidden) void look(); });
void look();
