// Formats numbers for readers.

/** A count. @param {number} number */
export function count(number) {
  return number.toLocaleString("en");
}

/** Points, with a useful number of digits. @param {number} number */
function points(number) {
  const size = Math.abs(number);
  if (size > 0 && size < 0.0005) return "<0.001";
  const decimals = size >= 1000 ? 1 : size >= 10 ? 2 : size > 0 ? 3 : 0;
  return number.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

/** A value: points, or a probability if the run's objective is a tile. @param {number} value @param {boolean} isChance */
export function valueText(value, isChance) {
  if (!isChance) return points(value);
  if (value !== 0 && value < 0.001) return `${(value * 100).toExponential(2)}%`;
  return `${(value * 100).toFixed(value > 0.999 && value < 1 ? 6 : 3)}%`;
}

/** A round value for an axis. @param {number} value @param {boolean} isChance */
export function axisText(value, isChance) {
  const rounded = Number((isChance ? 100 * value : value).toPrecision(8));
  return `${rounded.toLocaleString("en", { maximumSignificantDigits: 8 })}${isChance ? "%" : ""}`;
}

/** A loss. @param {number} loss @param {boolean} isChance */
export function lossText(loss, isChance) {
  return loss === 0 ? "0" : `−${valueText(loss, isChance)}`;
}

/** A share. @param {number} share */
export function percent(share) {
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)}%`;
}

/** The name of a board's value. @param {any} run */
export function valueName(run) {
  return run.discount === 1 ? run.value_name : "Discounted win";
}

/** The name of a move's value. @param {any} run */
export function worthName(run) {
  if (run.unit === "points") return "Value with score";
  return run.isChance && run.discount === 1 ? "Probability" : valueName(run);
}
