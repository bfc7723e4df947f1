// Numbers and units in the style of the program's commands.

const SIZES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/** A count with separators: 1,234. @param {number} number */
export function count(number) {
  return Math.round(number).toLocaleString("en-US");
}

/** Bytes: 47.7 MiB. @param {number} bytes */
export function size(bytes) {
  let unit = 0;
  let amount = bytes;
  for (; amount >= 1023.95 && unit + 1 < SIZES.length; unit++) amount /= 1024;
  return unit === 0 ? `${bytes} B` : `${amount.toFixed(1)} ${SIZES[unit]}`;
}

/** Things a second: 953 k/s, 13.0 M/s. @param {number} perSecond */
export function rate(perSecond) {
  if (perSecond >= 999.5e6) return `${(perSecond / 1e9).toFixed(1)} G/s`;
  if (perSecond >= 999.5e3) return `${(perSecond / 1e6).toFixed(1)} M/s`;
  if (perSecond >= 999.5) return `${(perSecond / 1e3).toFixed(0)} k/s`;
  return `${perSecond.toFixed(0)}/s`;
}

/** A part of a whole; never 100% before the end. @param {number} part */
export function share(part) {
  return `${(Math.min(1, Math.max(0, Math.floor(part * 1000) / 1000)) * 100).toFixed(1)}%`;
}

/** A time in whole units, at most two of them: 2 min 5 s, 5 days 3 h. @param {number} seconds */
export function about(seconds) {
  const last = seconds < 3_599.5 ? 1 : seconds < 86_370 ? 60 : 3_600;
  let rest = Math.round(seconds / last) * last;
  const words = [];
  for (const [length, unit] of /** @type {[number, string][]} */ ([[86_400, "day"], [3_600, "h"], [60, "min"], [1, "s"]])) {
    const whole = Math.floor(rest / length);
    if (whole > 0) words.push(`${whole} ${unit}${unit === "day" && whole > 1 ? "s" : ""}`);
    rest -= whole * length;
  }
  return words.join(" ") || "0 s";
}
