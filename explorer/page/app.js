// The page: choice of the run and the view, the address, and keys.

import { ask, onceBack } from "./api.js";
import { parseSize, toText } from "./board.js";
import { byId, element, isWriting, say, tell } from "./dom.js";
import { axisText, count, valueText } from "./numbers.js";
import * as play from "./play.js";

/** Views that are loaded when first opened. @type {Record<string, () => Promise<any>>} */
const LATER = { quiz: () => import("./quiz.js"), study: () => import("./study.js") };

const VIEWS = ["play", "quiz", "study"];

/** Milliseconds without a change before the page updates the address. Browsers limit such updates. */
const SETTLED = 250;

/** Milliseconds between checks whether a run is solved. */
const UNSOLVED = 3000;

/** @type {any[]} */
let runs = [];
/** @type {any} */
let run = null;
let view = "play";
let settling = 0;
let waiting = 0;
/** The last followed or written address. */
let followed = "";
/** Opened views of LATER. @type {Record<string, any>} */
const loaded = {};

/** The parameters in the address, after its #. */
function address() {
  return new URLSearchParams(location.hash.slice(1));
}

/** Updates the address to the current view. @param {string | null} board */
function setAddress(board) {
  const parts = new URLSearchParams();
  parts.set("view", view);
  parts.set("run", run.name);
  if (view === "play" && board !== null) parts.set("board", board);
  history.replaceState(null, "", `#${parts}`);
  followed = location.hash;
}

/** Shows the view that the address names. */
function followAddress() {
  followed = location.hash;
  const parts = address();
  const named = parts.get("run");
  const found = runs.find((other) => other.name === named);
  if (named !== null && found === undefined) tell(`No run called “${named.slice(0, 40)}” is served here.`, "error");
  const opened = found ?? run ?? runs[0];
  const isOther = opened !== run;
  run = opened;
  view = VIEWS.find((name) => name === parts.get("view")) ?? "play";
  byId("run").value = run.name;
  showFacts();
  for (const name of VIEWS) {
    byId(name).hidden = name !== view;
    byId(`to-${name}`).toggleAttribute("aria-current", name === view);
  }
  if (view !== "play") say("");
  if (isOther || (view === "play" && parts.has("board"))) play.openRun(run, parts.get("board"));
  else if (view === "play") {
    setAddress(play.boardText());
    play.sayAgain();
  }
  byId("from-here").textContent = `exact2048 stats --run DIR --from "${play.boardText()}"`;
  if (view in LATER) openLater(view).catch((error) => tell(error.message, "error"));
  byId(view === "quiz" ? "quiz-board" : "board").focus({ preventScroll: true });
}

/** Loads a view if needed, and opens it. @param {string} name */
async function openLater(name) {
  const module = await LATER[name]();
  if (!(name in loaded)) module.setUp(openInPlay);
  loaded[name] = module;
  module.openRun(run);
}

/** Opens a board in the Play view. @param {number[]} board */
function openInPlay(board) {
  view = "play";
  setAddress(toText(board, run.size));
  followAddress();
  window.scrollTo(0, 0);
}

/** Opens a board in the Play view of another run. @param {string} name @param {string} board */
function openElsewhere(name, board) {
  location.hash = new URLSearchParams({ view: "play", run: name, board }).toString();
}

function showFacts() {
  const facts = [run.board.replace("x", "×"), run.goal, `${count(run.states)} states`];
  if (run.start !== null) facts.push(`value ${valueText(run.start.expected, run.isChance)} at the start`);
  if (run.discount !== 1) facts.push(`each move multiplies the value of a win by ${axisText(run.discount, false)}`);
  if (run.from !== null) facts.push(`from ${run.from}`);
  if (run.spawner === "worst") facts.push("worst-case spawns");
  if (run.not_solved !== null) facts.push(`not solved: ${run.not_solved}`);
  byId("run-facts").textContent = facts.join(" · ");
}

/** Loads the runs. Repeats this later if a run is not solved. */
async function loadRuns() {
  window.clearTimeout(waiting);
  try {
    await readRuns();
  } finally {
    if (runs.some((of) => of.not_solved !== null)) waiting = window.setTimeout(() => loadRuns().catch(() => {}), UNSOLVED);
  }
}

async function readRuns() {
  const answer = await ask("runs");
  const before = run;
  runs = answer.runs.map((/** @type {any} */ of) => ({
    discount: 1, ...of, size: parseSize(of.board), isChance: of.unit === "probability",
  }));
  byId("run").replaceChildren(...runs.map((of) => element("option", { value: of.name }, of.name)));
  byId("run-choice").hidden = runs.length < 2;
  const again = runs.find((of) => of.name === before?.name);
  // If the shown run is still the same, the game continues. Another run may now have its name.
  if (again !== undefined && again.run_id === before.run_id) {
    const isSolvedNow = before.not_solved !== null && again.not_solved === null;
    Object.assign(before, again);
    runs[runs.indexOf(again)] = before;
    byId("run").value = before.name;
    showFacts();
    if (isSolvedNow) goOn();
    return;
  }
  run = null;
  followAddress();
}

byId("run").onchange = () => {
  location.hash = new URLSearchParams({ view, run: byId("run").value }).toString();
};
window.addEventListener("hashchange", followAddress);
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || isWriting(event.target)) return;
  const isUsed = view === "play" ? play.key(event) : (view === "quiz" && loaded.quiz?.key(event)) ?? false;
  if (isUsed) event.preventDefault();
});

/** Repeats the questions that the server did not answer. */
function goOn() {
  play.askAgain();
  if (view in LATER) openLater(view).catch((error) => tell(error.message, "error"));
}

/** Updates the address after the board has stayed the same for a moment. */
function boardChanged() {
  window.clearTimeout(settling);
  // If the user has opened another address meanwhile, that address stays and is followed next.
  settling = window.setTimeout(() => view === "play" && location.hash === followed && setAddress(play.boardText()), SETTLED);
}

async function copyLink() {
  setAddress(play.boardText());
  try {
    await navigator.clipboard.writeText(location.href);
    tell("Link copied.");
  } catch {
    tell(`Link: ${location.href}`);
  }
}

byId("link").onclick = copyLink;
play.setUp(boardChanged, openElsewhere);
onceBack(() => loadRuns().then(goOn, () => {}));

loadRuns().catch((error) => tell(error.message, "error"));
