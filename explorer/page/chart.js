// Line charts, drawn as SVG.

import { svg } from "./dom.js";

/** Largest width. Charts are narrower on narrow screens, so the size of their text stays the same. */
const WIDTH = 640;
const HEIGHT = 240;
const SIDE = { left: 62, right: 12, top: 12, bottom: 34 };
/** Width of a digit at the font size of charts. */
const DIGIT = 6.5;

/**
 * Draws a chart of lines over one axis, which shows whole numbers from 0 on. `label` describes the chart in words. A table
 * next to it should list the numbers. `isChance` says that values are between 0 and 1.
 * @param {{label: string, across: string, lines: {name: string, points: [number, number][]}[], isLog?: boolean,
 *   isChance?: boolean, text: (value: number) => string}} what
 */
export function chart({ label, across, lines, isLog = false, isChance = false, text }) {
  const width = Math.min(WIDTH, document.body.clientWidth - 20);
  const points = lines.flatMap((line) => line.points).filter(([, y]) => !isLog || y > 0);
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": label, class: "chart" });
  if (points.length === 0) return drawing;
  const scale = (/** @type {number} */ y) => (isLog ? Math.log10(y) : y);
  const [left, right] = range(points.map(([x]) => x), 0);
  const [low, high] = isChance ? range(points.map(([, y]) => y), 0, 1) : range(points.map(([, y]) => scale(y)));
  const rows = ticks(low, high, 4, isLog).map((value) => (isLog ? 10 ** value : value));
  const start = Math.max(SIDE.left, 12 + DIGIT * Math.max(...rows.map((y) => text(y).length)));
  const across_ = (/** @type {number} */ x) =>
    start + ((x - left) / (right - left)) * (width - start - SIDE.right);
  const up = (/** @type {number} */ y) =>
    HEIGHT - SIDE.bottom - ((scale(y) - low) / (high - low)) * (HEIGHT - SIDE.top - SIDE.bottom);
  for (const y of rows) {
    drawing.append(
      svg("line", { x1: start, x2: width - SIDE.right, y1: up(y), y2: up(y), class: "grid" }),
      svg("text", { x: start - 6, y: up(y) + 4, class: "end" }, text(y)),
    );
  }
  for (const x of ticks(left, right, 6, true)) {
    drawing.append(svg("text", { x: across_(x), y: HEIGHT - SIDE.bottom + 16, class: "middle" }, x.toLocaleString("en")));
  }
  drawing.append(svg("text", { x: width - SIDE.right, y: HEIGHT - 3, class: "end" }, across));
  lines.forEach((line, i) => {
    const drawn = line.points.filter(([, y]) => !isLog || y > 0).map(([x, y]) => `${across_(x).toFixed(1)},${up(y).toFixed(1)}`);
    drawing.append(svg("polyline", { points: drawn.join(" "), class: `line l${i}` }));
    if (drawn.length === 1) {
      const [x, y] = drawn[0].split(",");
      drawing.append(svg("circle", { cx: x, cy: y, r: 3, class: `dot l${i}` }));
    }
    if (lines.length > 1) {
      drawing.append(svg("text", { x: start + i * Math.min(130, (width - start - 60) / lines.length), y: HEIGHT - 3, class: `name l${i}` }, line.name));
    }
  });
  return drawing;
}

/** The smallest and the largest of some numbers, made distinct within limits. @param {number[]} numbers
 * @param {number} [least] @param {number} [most] */
function range(numbers, least = -Infinity, most = Infinity) {
  const low = numbers.reduce((a, b) => Math.min(a, b));
  const high = numbers.reduce((a, b) => Math.max(a, b));
  const apart = Math.max(Math.abs(high) * 1e-6, 1e-12);
  const beyond = Math.max(apart, 0.5);
  return high - low > apart ? [low, high] : [Math.max(least, low - beyond), Math.min(most, high + beyond)];
}

/** Round numbers within a range. @param {number} low @param {number} high @param {number} most
 * @param {boolean} [areWhole] whether they must be integers */
function ticks(low, high, most, areWhole = false) {
  const raw = (high - low) / most;
  const size = 10 ** Math.floor(Math.log10(raw));
  const round = size * ([1, 2, 5, 10].find((factor) => factor * size >= raw) ?? 10);
  const step = areWhole ? Math.max(1, round) : round;
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => (first + i) * step);
}
