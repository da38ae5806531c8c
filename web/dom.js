// The few lines of DOM work that the views share.

export const byId = (id) => document.getElementById(id);

/** A new element: `make("p", {class: "hint"}, "text", child, …)`. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Only touch what changed: assistive technology hears of every write. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
