// Numbers and units in the style of the program's commands.

const BINARY = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const DECIMAL = ["kB", "MB", "GB", "TB", "PB", "EB"];

/** A count with separators: 1,234. @param {number} number */
export function count(number) {
  return Math.round(number).toLocaleString("en-US");
}

/** Decimals that a number of bytes needs in its unit; 3 where these are more than anybody types. @param {number} bytes @param {number} base */
function decimals(bytes, base) {
  let unit = 1;
  while (unit * base <= bytes) unit *= base;
  return [0, 1, 2].find((digits) => (bytes * 10 ** digits) % unit === 0) ?? 3;
}

/**
 * Bytes: 47.7 MiB. Beside a size that somebody gave, in its units: 50.0 MB.
 * @param {number} bytes @param {number} [given]
 */
export function size(bytes, given = 0) {
  const isDecimal = decimals(given, 1000) < decimals(given, 1024);
  const base = isDecimal ? 1000 : 1024;
  const names = isDecimal ? DECIMAL : BINARY;
  if (bytes < base) return `${bytes} B`;
  let unit = 0;
  let amount = bytes / base;
  for (; amount >= base - 0.05 && unit + 1 < names.length; unit++) amount /= base;
  return `${amount.toFixed(1)} ${names[unit]}`;
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
