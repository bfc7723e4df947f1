// Small helpers for elements. Text is always set as text, so external content is never parsed as HTML.

/** Returns the element with an id. @param {string} id @returns {any} */
export function byId(id) {
  return document.getElementById(id);
}

/**
 * Creates an element.
 * @param {string} name @param {Record<string, string | number>} [attributes] @param {(Node | string)[]} children
 */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(...children);
  return made;
}

/**
 * Creates an SVG element.
 * @param {string} name @param {Record<string, string | number>} [attributes] @param {(Node | string)[]} children
 */
export function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(...children);
  return made;
}

/** Announces a text to screen readers. @param {string} text */
export function say(text) {
  byId("live").textContent = text;
}

/** Shows a message, or hides it if the text is empty. @param {string} text @param {"error" | "info"} [kind] */
export function tell(text, kind = "info") {
  const place = byId("message");
  place.textContent = text;
  place.className = kind;
  place.hidden = text === "";
}

/** Returns whether keys are input for a field or dialog. @param {EventTarget | null} target */
export function isWriting(target) {
  return target instanceof HTMLElement && target.closest("input, select, textarea, dialog[open]") !== null;
}
