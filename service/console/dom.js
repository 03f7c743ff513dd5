/** @typedef {Node | string | number | null | undefined | false | readonly any[]} Child */

/**
 * Makes an element. Text is always text: nothing here reads markup.
 *
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Readonly<Record<string, unknown>>} attributes A function is a listener, named as its event with `on`;
 *   `true` is an attribute without a value; `false`, `null` and `undefined` are none.
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  append(element, children);
  return element;
}

/** @param {Element} parent @param {readonly Child[]} children */
function append(parent, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(parent, child);
    else parent.append(child instanceof Node ? child : String(child));
  }
}

const shapes = {
  folder:
    "M3 6.5A1.5 1.5 0 0 1 4.5 5h4l2 2.2h5A1.5 1.5 0 0 1 17 8.7v6.8a1.5 1.5 0 0 1-1.5 1.5h-11A1.5 1.5 0 0 1 3 15.5z",
  table: "M3.5 4.5h13v11h-13zM3.5 8.2h13M3.5 11.8h13M8 8.2v7.3",
  chevron: "m8 5 5 5-5 5",
  copy: "M7.5 7.5h8v8h-8zM12.5 7.5v-3h-8v8h3",
  sun: "M10 6.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7zM10 2v1.8M10 16.2V18M2 10h1.8M16.2 10H18M4.3 4.3l1.3 1.3M14.4 14.4l1.3 1.3M15.7 4.3l-1.3 1.3M5.6 14.4l-1.3 1.3",
  moon: "M16.5 12A7 7 0 0 1 8 3.5 7 7 0 1 0 16.5 12z",
  lock: "M5.5 9h9v7h-9zM7.5 9V6.8a2.5 2.5 0 0 1 5 0V9",
};

/**
 * A drawing that says nothing that the text beside it does not say.
 *
 * @param {keyof typeof shapes} name
 */
export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 20 20");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", shapes[name]);
  svg.append(path);
  return svg;
}

/** Announces what happened to screen readers. @param {string} text */
export function announce(text) {
  const region = document.getElementById("announcements");
  if (region !== null) region.textContent = text;
}

/**
 * A button that copies a text.
 *
 * @param {string} text
 * @param {string} what What the text is, e.g. "location".
 */
export function copyButton(text, what) {
  const button = h("button", {
    type: "button",
    class: "quiet icon-button",
    "aria-label": `Copy the ${what}`,
    onclick: copy,
  });
  button.append(icon("copy"));
  async function copy() {
    try {
      await navigator.clipboard.writeText(text);
      button.classList.add("done");
      announce(`The ${what} was copied.`);
    } catch {
      announce(`The browser did not allow to copy the ${what}.`);
    }
  }
  return button;
}

/**
 * Asks before something is done that cannot be undone.
 *
 * @param {{ title: string, text: Child, action: string, keep?: string }} question
 * @returns {Promise<boolean>}
 */
export function confirm({ title, text, action, keep = "Cancel" }) {
  return new Promise((resolve) => {
    const dialog = h(
      "dialog",
      { "aria-labelledby": "dialog-title", onclose: () => close(dialog.returnValue === "yes") },
      h(
        "form",
        { method: "dialog" },
        h("h2", { id: "dialog-title" }, title),
        h("p", {}, text),
        h(
          "div",
          { class: "actions" },
          h("button", { value: "no", class: "quiet", autofocus: true }, keep),
          h("button", { value: "yes", class: "danger" }, action),
        ),
      ),
    );
    /** @param {boolean} answer */
    function close(answer) {
      dialog.remove();
      resolve(answer);
    }
    document.body.append(dialog);
    dialog.showModal();
  });
}
