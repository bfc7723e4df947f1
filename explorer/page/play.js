// The Play view: the board, the values of moves and spawns, and the course of the game.

import { Refused, ask } from "./api.js";
import * as boards from "./board.js";
import { bestOf, exportGame, importGame, showCourse } from "./course.js";
import { byId, element, say, tell } from "./dom.js";
import { Game, lossOf } from "./game.js";
import { inWords, onSwipe, showBoard, showCells } from "./grid.js";
import { drawPosition } from "./positions.js";
import { count, lossText, valueName, valueText, worthName } from "./numbers.js";

/** @typedef {import("./board.js").Move} Move */

const ARROWS = { left: "←", right: "→", up: "↑", down: "↓" };

/** Number of boards whose values the page requests together. */
const TOGETHER = 8;

/** Seconds that the server may compute before the page asks the user. */
const QUICK_SECONDS = 10;

/** Longest time limit that a server accepts. */
const MOST_SECONDS = 600;

/** @type {any} */
let run;
/** @type {Game} */
let game;
/**
 * Edited cells, or a move that waits for its tile from the user or from the values.
 * @type {{board: number[], size: boards.Size, move?: Move, isByHand?: boolean} | null}
 */
let open = null;
/** Typed digits of a tile, and their cell. */
let [typed, typedInto] = ["", 0];
/** The move whose spawns are shown. @type {Move | null} */
let shownMove = null;
let isPlaying = false;
/** Cancels requests about a board that is no longer shown. */
let asking = new AbortController();
/** Whether an answer for the shown board may still arrive. */
let isAsked = false;
/** Estimated seconds of an answer for the shown board, if the user decides about it; 0 if unknown. @type {number | null} */
let offered = null;
let drawing = 0;
/** Time of the last move, until the page shows the values of the new board. @type {number | null} */
let pressedAt = null;
/** Called when the board changes. */
let changed = () => {};
/** Opens a board in another run. @type {(run: string, text: string) => void} */
let openElsewhere = () => {};

/** Sets the buttons up. @param {() => void} whenChanged called when the board changes
 * @param {(run: string, text: string) => void} elsewhere opens a board in another run */
export function setUp(whenChanged, elsewhere) {
  [changed, openElsewhere] = [whenChanged, elsewhere];
  byId("new").onclick = startNew;
  byId("any").onclick = startAnywhere;
  byId("undo").onclick = undo;
  byId("redo").onclick = redo;
  byId("best").onclick = playBest;
  byId("auto").onclick = () => setPlaying(!isPlaying);
  byId("edit").onclick = () => (open === null ? edit() : endEdit());
  byId("edit-form").onsubmit = applyEdit;
  byId("board-text").oninput = readEdit;
  byId("hints").onchange = showAll;
  byId("export").onclick = () => exportGame(game);
  byId("import").onchange = (/** @type {Event} */ event) => importGame(event, boards.sizesOf(run.size), openGame);
  byId("course-moves").ontoggle = () => showCourse(run, game);
  onSwipe(byId("board"), (move) => open === null && play(move));
}

/** Opens a run, with the board of a link if given. @param {any} opened @param {string | null} text */
export function openRun(opened, text) {
  run = opened;
  setPlaying(false);
  open = null;
  byId("value-name").textContent = valueName(run);
  byId("worth-name").textContent = worthName(run);
  if (text !== null) {
    try {
      const { board, size } = boards.readBoard(text, run.size);
      openGame(new Game(size, board));
      return;
    } catch (error) {
      tell(`The link has no valid board: ${/** @type {Error} */ (error).message}`, "error");
    }
  }
  openGame(begin());
}

/** The board that is shown, as text. */
export function boardText() {
  return boards.toText(game.board, game.size);
}

/** @param {Game} opened */
function openGame(opened) {
  game = opened;
  open = null;
  shownMove = null;
  setPlaying(false);
  changedBoard();
}

/** Handles a key. @param {KeyboardEvent} event @returns {boolean} whether the game used it */
export function key(event) {
  const letters = { a: "left", d: "right", w: "up", s: "down" };
  const arrow = /^Arrow(Left|Right|Up|Down)$/.exec(event.key)?.[1].toLowerCase();
  const name = event.key.toLowerCase();
  const move = /** @type {Move | undefined} */ (arrow ?? letters[/** @type {"a"} */ (name)]);
  const onButton = event.target instanceof HTMLButtonElement && (event.key === " " || event.key === "Enter");
  if (onButton) return false;
  const isUndo = name === "u" || event.key === "Backspace";
  if (open !== null) {
    const isEdited = open.move === undefined;
    if (event.key === "Escape" || (isEdited ? name === "e" : isUndo)) undo();
    // While the page waits for the worst tile, the keys of moves neither make a move nor scroll the page.
    else return open.isByHand === false && (move !== undefined || event.key === " ");
    return true;
  }
  if (move !== undefined) play(move);
  else if (event.key === " ") playBest();
  else if (isUndo) undo();
  else if (name === "r") redo();
  else if (name === "p") setPlaying(!isPlaying);
  else if (name === "n") startNew();
  else if (name === "e") edit();
  else if (name === "h") changeHints();
  else return false;
  return true;
}

/** A new game, from the position where the run begins or from two tiles. */
function begin() {
  if (run.from === null) return Game.start(run.size, run.spawn4);
  return new Game(run.size, boards.parseBoard(run.from, run.size));
}

/** Starts a game at a sampled position. */
async function startAnywhere() {
  try {
    const position = await drawPosition(run, asking.signal);
    if (position === undefined) tell("This run has no position with several moves.");
    else openGame(new Game(run.size, boards.parseBoard(position.board, run.size)));
  } catch (error) {
    if (/** @type {Error} */ (error).name !== "AbortError") tell(/** @type {Error} */ (error).message, "error");
  }
}

function startNew() {
  openGame(begin());
}

function undo() {
  setPlaying(false);
  // An open edit or move is not yet a step of the game, so undo cancels only the edit or move.
  if (open !== null) endEdit();
  else if (game.undo()) changedBoard();
}

function redo() {
  setPlaying(false);
  if (open !== null) endEdit();
  else if (game.redo()) changedBoard();
}

/** Shows values always, then after the move, then never. */
function changeHints() {
  const hints = byId("hints");
  hints.selectedIndex = (hints.selectedIndex + 1) % hints.options.length;
  showAll();
}

/** Whether a board has the tile that ends the game. */
function isWon(board = game.board) {
  if (run.target === null) return false;
  // In a position of the real game, the largest tiles are the stones of the run.
  const large = game.size.name === run.size.name ? 0 : boards.largeTilesOf(run.size);
  return board.filter((exponent) => !boards.isStone(exponent) && boards.tileOf(exponent) >= run.target).length > large;
}

/** Makes a move, and spawns a tile. @param {Move} move */
function play(move) {
  if (isWon()) return;
  const made = boards.makeMove(game.board, move, game.size);
  if (made === null) return;
  pressedAt = performance.now();
  shownMove = null;
  tell("");
  const spawning = byId("spawning").value;
  open = { board: made.after, size: game.size, move, isByHand: spawning === "hand" };
  if (spawning === "chance") putTile(boards.drawSpawn(made.after, run.spawn4));
  else if (spawning === "hand") showPlacing();
  else if (isKnown(game.now)) putWorst();
  else showWaiting();
}

/** Places the tile after the waiting move. @param {{cell: number, exponent: number}} spawn */
function putTile(spawn) {
  const { move } = /** @type {{move: Move}} */ (open);
  game.play(move, spawn);
  open = null;
  changedBoard();
}

/** Places the worst tile after the values have arrived. */
function putWorst() {
  const { board, move } = /** @type {{board: number[], move: Move}} */ (open);
  const { spawns } = game.now.answer;
  const worst = worstOf(spawns?.[move] ?? []);
  putTile(worst ?? boards.drawSpawn(board, run.spawn4));
  // After a winning move, the next tile does not matter.
  if (worst === null && !isWon()) tell("The worst tile is unknown here, so the new tile is random.");
}

/** Shows a move that waits for the worst tile. */
function showWaiting() {
  const { board } = /** @type {{board: number[]}} */ (open);
  showControls();
  showBoard(byId("board"), board, game.size);
  if (!isAsked) load(asking.signal);
}

/** The worst tile; `null` if no value is known. @param {any[]} spawns the server's spawns */
function worstOf(spawns) {
  const sign = run.less_is_better ? -1 : 1;
  const known = spawns.filter(({ value }) => value !== null);
  if (known.length === 0) return null;
  const worst = known.reduce((a, b) => (sign * b.value < sign * a.value ? b : a));
  return { cell: worst.cell, exponent: Math.log2(worst.tile) };
}

function playBest() {
  const best = game.now.answer?.best;
  if (best) play(best);
}

/** @param {boolean} is */
function setPlaying(is) {
  if (is === isPlaying) return;
  isPlaying = is;
  byId("auto").setAttribute("aria-pressed", String(is));
  byId("auto").textContent = is ? "Pause" : "Autoplay";
  if (is) playOn();
}

/** Plays the best move if known. The answer for the next board calls this function again. */
function playOn() {
  if (!isPlaying || game.now.answer === undefined) return;
  if (!game.now.answer.best || open !== null || isWon()) {
    setPlaying(false);
    return;
  }
  playBest();
}

// Editing, and placing tiles by hand.

function edit() {
  setPlaying(false);
  open = { board: game.board.slice(), size: game.size };
  typed = "";
  // Hides the values of the previous board.
  showAll();
  byId("board-text").value = boards.toText(open.board, open.size);
  showEditing();
}

function showEditing() {
  const { board, size } = /** @type {{board: number[], size: boards.Size}} */ (open);
  showCells(byId("board"), board, size, (cell) => !boards.isStone(board[cell]), (cell, event) => {
    const largest = 15;
    const is = /** @type {any} */ (event);
    if (/^[0-9]$/.test(is.key)) board[cell] = typeTile(cell, is.key);
    else if (is.key === "-" || is.shiftKey || event.type === "contextmenu") board[cell] = (board[cell] + largest) % (largest + 1);
    else board[cell] = (board[cell] + 1) % (largest + 1);
    byId("board-text").value = boards.toText(board, size);
    showEditing();
  });
}

/**
 * The exponent of a cell after another typed digit: 1 and 6 make 16. A digit that does not continue a tile begins a new tile.
 * @param {number} cell @param {string} digit
 */
function typeTile(cell, digit) {
  const isBegun = (/** @type {string} */ text) => boards.TILES.some((tile) => String(tile).startsWith(text));
  const longer = cell === typedInto ? typed + digit : digit;
  [typed, typedInto] = [isBegun(longer) ? longer : digit, cell];
  const { board } = /** @type {{board: number[]}} */ (open);
  const exponent = boards.TILES.indexOf(Number(typed));
  return exponent < 0 ? board[cell] : exponent;
}

function readEdit() {
  try {
    open = boards.readBoard(byId("board-text").value, run.size);
  } catch {
    // The user is still typing. Submitting the form reports errors.
    return;
  }
  const written = document.activeElement;
  showEditing();
  /** @type {HTMLElement} */ (written).focus();
}

/** @param {Event} event */
async function applyEdit(event) {
  event.preventDefault();
  const text = byId("board-text").value;
  try {
    const { board, size } = boards.readBoard(text, run.size);
    // Stones are the large tiles of a real game, so several runs may fit the position.
    const isReal = size.name !== run.size.name || board.some((exponent) => run.target !== null && !boards.isStone(exponent) && boards.tileOf(exponent) > run.target);
    const chosen = isReal ? await chooseRun(text) : undefined;
    if (chosen !== undefined && chosen !== run.name) openElsewhere(chosen, text);
    else if (size.name === game.size.name) {
      game.edit(board);
      endEdit();
    } else openGame(new Game(size, board));
  } catch (error) {
    tell(/** @type {Error} */ (error).message, "error");
  }
}

/** The run with the best answer about a position. Of runs with several objectives, the shown one's counts. @param {string} text */
async function chooseRun(text) {
  const { answers, refusals } = await ask("compare", { board: text });
  const own = answers.find((/** @type {any} */ answer) => answer.run === run.name) ?? answers[0];
  if (own === undefined) throw new Error(refusals.find((/** @type {any} */ of) => of.run === run.name).reason);
  const same = answers.filter((/** @type {any} */ answer) => answer.objective === own.objective);
  const [best] = same;
  const value = best.value === undefined ? "" : ` with ${worth(best.value)}`;
  tell(same.length === 1 ? `The run ${best.run} fits this position.` : `The run ${best.run} has the best answer${value}, of ${same.length} runs that fit.`);
  return best.run;
}

function endEdit() {
  open = null;
  tell("");
  changedBoard();
  byId("board").focus();
}

/** Lets the user place the tile after a move. */
function showPlacing() {
  const { board } = /** @type {{board: number[]}} */ (open);
  showControls();
  showCells(byId("board"), board, game.size, (cell) => board[cell] === 0, (cell, event) => {
    const is = /** @type {any} */ (event);
    if (is.key !== undefined && !/^[24]$/.test(is.key)) return;
    const isFour = is.key === "4" || is.shiftKey || event.type === "contextmenu";
    putTile({ cell, exponent: isFour ? 2 : 1 });
    byId("board").focus();
  });
  say("Place a tile on an empty cell.");
}

// Display.

/** Shows the board, and requests its value. */
function changedBoard() {
  stop();
  offered = null;
  shownMove = null;
  showAll();
  changed();
  load(asking.signal);
}

/** Repeats requests after the server has returned. */
export function askAgain() {
  if (game) load(asking.signal);
}

/** Cancels the requests about the board. */
function stop() {
  asking.abort();
  asking = new AbortController();
}

/** Requests the values of the board, then of earlier boards. @param {AbortSignal} signal @param {number} [seconds] */
async function load(signal, seconds = open === null ? QUICK_SECONDS : MOST_SECONDS) {
  const { steps, at } = game;
  isAsked = true;
  const waiting = window.setInterval(showComputing, 1000, performance.now(), signal);
  try {
    await learn(steps[at], seconds, signal).finally(() => window.clearInterval(waiting));
    if (signal.aborted) return;
    if (open?.isByHand === false) {
      putWorst();
      return;
    }
    showAll();
    measure();
    sayValues();
    if (isPlaying) window.setTimeout(() => !signal.aborted && playOn(), Number(byId("speed").value));
    const unknown = steps.filter((step, i) => i < at && step.answer === undefined);
    for (let i = 0; i < unknown.length && !signal.aborted; i += TOGETHER) {
      await Promise.all(unknown.slice(i, i + TOGETHER).map((step) => learn(step, 0, signal)));
    }
    if (unknown.length > 0 && !signal.aborted) showAll();
  } catch (error) {
    const isSlow = error instanceof Refused && error.code === "DEADLINE_EXCEEDED";
    // The losses of earlier moves are not worth a long computation.
    if (signal.aborted || (isSlow && isKnown(steps[at]))) return;
    isAsked = false;
    setPlaying(false);
    if (isSlow && seconds < MOST_SECONDS) {
      offer(error.seconds ?? 0);
      return;
    }
    const { message } = /** @type {Error} */ (error);
    if (open?.isByHand === false) {
      open = null;
      showAll();
      tell(`The worst tile is unknown here, so the move was undone: ${message}`, "error");
    }
    byId("answer-note").hidden = false;
    byId("answer-note").textContent = message;
  }
}

/** Shows how long the server has computed. @param {number} begun @param {AbortSignal} signal */
function showComputing(begun, signal) {
  const seconds = Math.round((performance.now() - begun) / 1000);
  if (seconds < 2 || signal.aborted) return;
  const of = offered ? ` of about ${offered} s` : "";
  showNote(`Computing values: ${seconds} s${of}.`, "Stop", () => {
    stop();
    offer(offered ?? 0);
  });
}

/** Lets the user decide about a long computation. @param {number} seconds the server's estimate; 0 if unknown */
function offer(seconds) {
  offered = seconds;
  isAsked = false;
  const time = seconds ? ` Computing them takes about ${seconds} s.` : "";
  showNote(`The run does not store these values.${time}`, "Compute", () => {
    byId("compute").hidden = true;
    load(asking.signal, MOST_SECONDS);
  });
}

/** Shows a note below the moves, with a button. @param {string} note @param {string} label @param {() => void} act */
function showNote(note, label, act) {
  byId("answer-note").hidden = false;
  byId("answer-note").textContent = note;
  byId("compute").hidden = false;
  byId("compute").textContent = label;
  byId("compute").onclick = act;
}

/** Whether the answer for a board has its spawns. @param {import("./game.js").Step} step */
function isKnown({ answer }) {
  return answer !== undefined && (answer.spawns !== undefined || answer.moves === undefined || run.best_moves);
}

/** Requests the value of a board, unless known. @param {import("./game.js").Step} step
 * @param {number} seconds time limit of the shown board; 0 for another board @param {AbortSignal} signal */
async function learn(step, seconds, signal) {
  const isShown = seconds > 0;
  // The run has no values of won games.
  if (isWon(step.board)) step.answer = {};
  if (isShown ? isKnown(step) : step.answer !== undefined) return;
  try {
    const board = boards.toText(step.board, game.size);
    const asked = { run: run.name, board, spawns: isShown ? true : undefined };
    step.answer = await ask("values", asked, signal, isShown ? seconds : undefined);
  } catch (error) {
    // An unreachable board stays unreachable; other failures may be temporary.
    const isFinal = error instanceof Refused && (error.code === "NOT_FOUND" || error.code === "INVALID_ARGUMENT");
    if (!isFinal) throw error;
    step.answer = { refused: error.message };
  }
}

/** Records the time from the key press to the values. */
function measure() {
  if (pressedAt === null) return;
  performance.measure("key to values", { start: pressedAt, end: performance.now() });
  pressedAt = null;
}

/** Announces the values after this view is reopened. */
export function sayAgain() {
  if (game?.now.answer !== undefined && open === null) sayValues();
}

function sayValues() {
  const { answer } = game.now;
  // In another view, users of screen readers would attribute the text to that view's board.
  if (byId("play").hidden) return;
  if (answer.refused) say(answer.refused);
  else if (byId("hints").value !== "always" || answer.value === undefined) say(inWords(game.board, game.size));
  else if (answer.best === null) say(`${inWords(game.board, game.size)} No move is legal.`);
  else say(`${inWords(game.board, game.size)} Value ${worth(answer.value)}. Best: ${bestOf(answer).join(" or ")}.`);
}

/** @param {number} value */
function worth(value) {
  return valueText(value, run.isChance);
}

/** Shows the controls that apply to the board. */
function showControls() {
  const isEdited = open !== null && open.move === undefined;
  byId("edit").setAttribute("aria-pressed", String(isEdited));
  byId("edit-form").hidden = !isEdited;
  byId("place-note").hidden = !open?.isByHand;
  byId("undo").disabled = open === null && game.at === 0;
  byId("redo").disabled = game.at === game.steps.length - 1;
  // Finding the worst tile needs values.
  const spawning = byId("spawning");
  const worst = spawning.querySelector("[value=worst]");
  worst.disabled = run.best_moves || run.not_solved !== null;
  if (worst.disabled && worst.selected) spawning.value = "chance";
}

function showAll() {
  const { answer, score, spawns } = game.now;
  const isEdited = open !== null && open.move === undefined;
  const hints = byId("hints").value;
  const isShown = hints === "always" && !isEdited;
  const isTrained = hints === "after" && !isEdited;
  showControls();
  if (open === null) {
    showBoard(byId("board"), game.board, game.size, { spawned: spawns.map((spawn) => spawn.cell) });
  }
  byId("score").textContent = count(score);
  byId("value").textContent = isShown && answer?.value !== undefined ? worth(answer.value) : "–";
  byId("best").disabled = !answer?.best;
  const isOver = !boards.canMove(game.board, game.size);
  byId("over").hidden = isEdited || (!isOver && !isWon());
  byId("over").textContent = isWon() ? "Won." : "Game over: no move is legal.";
  byId("hint-panel").hidden = !isShown;
  byId("course").hidden = !isShown && !isTrained;
  byId("train-panel").hidden = !isTrained;
  if (isTrained) showTraining().catch((error) => tell(error.message, "error"));
  const note = noteOf(answer);
  byId("answer-note").hidden = note === undefined;
  byId("answer-note").textContent = note ?? "";
  byId("compute").hidden = true;
  if (note === undefined && offered !== null && !isAsked) offer(offered);
  const losses = game.past.map((_, i) => (i === 0 ? undefined : game.loss(i))).filter((loss) => loss !== undefined);
  const lost = losses.reduce((a, b) => a + b, 0);
  byId("lost").textContent = (isShown || isTrained) && losses.length > 0 ? lossText(lost, run.isChance) : "–";
  showMoves(answer);
  showSpawns(answer);
  // The values are more urgent than the chart.
  window.clearTimeout(drawing);
  drawing = window.setTimeout(() => showCourse(run, game));
}

/** Shows how good the last move was. */
async function showTraining() {
  const { showTraining } = await import("./train.js");
  showTraining(run, game, (at) => {
    setPlaying(false);
    game.at = at;
    changedBoard();
  });
}

/** A note on the values, or the reason for their absence. @param {any} answer @returns {string | undefined} */
function noteOf(answer) {
  if (answer?.refused) return answer.refused;
  if (run.not_solved) return run.not_solved;
  if (run.best_moves) return "This run stores best moves and few values, so only the best move is shown.";
  if (answer?.known_reachable === false) {
    return `The run no longer stores the reachable boards of tile sum ${count(answer.layer)}, so this board may be impossible.`;
  }
  return undefined;
}

/** @param {any} answer */
function showMoves(answer) {
  const rows = boards.MOVES.map((move) => {
    const made = boards.makeMove(game.board, move, game.size);
    const answered = answer?.moves?.find((/** @type {any} */ other) => other.move === move);
    const loss = answer?.moves ? lossOf(answer.moves, move) : undefined;
    const button = element("button", { type: "button", "aria-keyshortcuts": `Arrow${move[0].toUpperCase()}${move.slice(1)}` }, `${ARROWS[move]} ${move}`);
    button.toggleAttribute("disabled", made === null);
    button.onclick = () => play(move);
    button.onfocus = button.onmouseenter = () => {
      shownMove = move;
      showSpawns(game.now.answer);
    };
    const isTie = answered?.best && bestOf(answer).length > 1;
    const isClose = answered?.may_be_best && answer.moves.filter((/** @type {any} */ other) => other.may_be_best).length > 1;
    const badge = isClose ? "may be best" : !answered?.best ? "" : isTie ? "equally best" : "best";
    if (badge) button.append(element("span", { class: "badge" }, badge));
    const isOutside = made !== null && answered?.legal === false;
    const value = isOutside ? "leaves the formation" : answered?.value === undefined || answered.value === null ? "–" : worth(answered.value);
    return element("tr", { class: `${answered?.best ? "best" : ""} ${made === null ? "illegal" : ""}`, "data-move": move },
      element("td", {}, button),
      element("td", { class: run.best_moves ? "greyed" : "" }, made === null ? "not legal" : value),
      element("td", { class: loss ? "loses" : "" }, loss === undefined ? "" : lossText(loss, run.isChance)));
  });
  const table = byId("moves");
  const focused = [...table.querySelectorAll("button")].indexOf(document.activeElement);
  table.replaceChildren(...rows);
  if (focused >= 0) table.querySelectorAll("button")[focused].focus();
}

/** Shows how each possible spawn changes the value. @param {any} answer */
function showSpawns(answer) {
  const move = shownMove ?? answer?.best;
  const spawns = answer?.spawns?.[move];
  const made = answer?.moves?.find((/** @type {any} */ other) => other.move === move);
  for (const row of byId("moves").children) row.classList.toggle("shown", row.dataset.move === move && spawns !== undefined);
  byId("spawn-title").hidden = byId("spawns").hidden = byId("spawn-note").hidden = spawns === undefined;
  if (spawns === undefined) return;
  byId("spawn-title").textContent = `Possible spawns after ${move}`;
  const after = boards.makeMove(game.board, move, game.size)?.after ?? game.board;
  /** @type {string[][]} */
  const notes = after.map(() => []);
  // The value of a move is the discount times the mean (or the smallest) of the values after its spawns.
  const expected = run.unit === "points" ? made.value - made.score : made.value / run.discount;
  for (const { cell, tile, value } of spawns) {
    // Differences in the last bits are rounding errors.
    const change = Math.abs(value - expected) > 1e-12 * expected ? value - expected : 0;
    const sign = change < 0 ? "−" : "+";
    notes[cell].push(value === null ? `${tile}: –` : `${tile}: ${sign}${valueText(Math.abs(change), run.isChance)}`);
  }
  showBoard(byId("spawns"), after, game.size, { notes });
  byId("spawns").setAttribute("aria-label", spawns.map((/** @type {any} */ spawn) =>
    `a ${spawn.tile} in cell ${spawn.cell + 1}: ${worth(spawn.value)}`).join("; "));
  const which = run.spawner === "worst" ? "least" : "mean";
  byId("spawn-note").textContent =
    `Change of the value by each tile, compared with ${worth(expected)}, the ${which} after this move.`;
}
