// Small helpers for elements. Text is always set as text: no external content is ever parsed as HTML.

/** The element of an id. @param {string} id @returns {any} */
export function byId(id) {
  return document.getElementById(id);
}

/**
 * A new element.
 * @param {string} name @param {Record<string, string | number>} [attributes] @param {(Node | string)[]} children
 */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(...children);
  return made;
}

/**
 * A new element of a drawing.
 * @param {string} name @param {Record<string, string | number>} [attributes] @param {(Node | string)[]} children
 */
export function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(...children);
  return made;
}

/** Says something to those who listen to the page. @param {string} text */
export function say(text) {
  byId("live").textContent = text;
}

/** Shows a message, or none. @param {string} text @param {"error" | "info"} [kind] */
export function tell(text, kind = "info") {
  const place = byId("message");
  place.textContent = text;
  place.className = kind;
  place.hidden = text === "";
}

/** Whether keys are for a field that somebody writes in. @param {EventTarget | null} target */
export function isWriting(target) {
  return target instanceof HTMLElement && target.closest("input, select, textarea, dialog[open]") !== null;
}
