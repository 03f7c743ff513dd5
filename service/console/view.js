import { ApiError } from "./calls.js";
import { ago, dateAndTime } from "./format.js";
import htm from "./libraries/htm.js";
import { Fragment, h, render } from "./libraries/preact.js";

/** @typedef {import("./libraries/preact.js").ComponentChildren} Children */

/** Renders markup from a template. Values are always text and never parsed as markup. */
export const html = htm.bind(h);

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

/** Renders a decorative icon, which screen readers skip. @param {keyof typeof shapes} name */
export const icon = (name) =>
  html`<svg viewBox="0 0 20 20" class="icon" aria-hidden="true"><path d=${shapes[name]} /></svg>`;

/** Announces an event to screen readers. @param {string} text */
export function announce(text) {
  const region = document.getElementById("announcements");
  if (region !== null) region.textContent = text;
}

/** Renders a button that copies a text. @param {string} text @param {string} what The kind of the text, such as "location". */
export function copyButton(text, what) {
  const copy = (/** @type {Event} */ { currentTarget: button }) =>
    navigator.clipboard.writeText(text).then(
      () => {
        if (button instanceof Element) button.classList.add("done");
        announce(`The ${what} was copied.`);
      },
      () => announce(`The browser did not allow to copy the ${what}.`),
    );
  return html`<button type="button" class="quiet small" aria-label=${`Copy the ${what}`} title=${`Copy the ${what}`} onClick=${copy}>${icon("copy")}</button>`;
}

/** Converts an error message of the catalog, which begins in lower case, to a sentence. @param {string} text */
export function sentence(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.?!]$/.test(text) ? "" : "."}`;
}

/** @param {unknown} error */
export const messageOf = (error) =>
  error instanceof ApiError ? sentence(error.message) : `The console failed: ${error}`;

/** Renders an error with a button to retry. @param {unknown} error @param {() => void} retry */
export const problem = (error, retry) =>
  html`<div class="box problem" role="alert"><p>${messageOf(error)}</p><button type="button" class="outline" onClick=${retry}>Try again</button></div>`;

/** Renders the reason of a failed action; empty without a failure. @param {string} text */
export const failure = (text) => html`<p class="failure" role="alert">${text}</p>`;

export const loading = () => html`<p class="loading" role="status">Loading…</p>`;

/** @param {Children} children */
export const empty = (children) => html`<div class="box empty">${children}</div>`;

/** Renders the reason why something cannot be shown although no error occurred. @param {Children} children */
export const note = (children) => html`<div class="box note">${children}</div>`;

/** @param {Children} children */
export const hint = (children) => html`<p class="hint">${children}</p>`;

/** @param {Children} children */
export const mono = (children) => html`<span class="mono">${children}</span>`;

/** @param {string} status */
export const statusOf = (status) => html`<span class=${`status ${status.toLowerCase()}`}>${status}</span>`;

/** Renders the age of a time. @param {number} millis The milliseconds since the epoch. */
export const time = (millis) =>
  html`<time datetime=${new Date(millis).toISOString()} title=${dateAndTime(millis)}>${ago(millis)}</time>`;

/** Renders a list of names and values. Unknown values are skipped. @param {readonly (readonly [string, Children])[]} entries */
export const facts = (entries) =>
  html`<dl>${entries
    .filter(([, value]) => value !== undefined && value !== false && value !== "")
    .map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;

/** @param {Readonly<Record<string, string>>} entries @returns {[string, Children][]} */
export const monoEntries = (entries) => Object.entries(entries).map(([name, value]) => [name, mono(value)]);

/** @param {string} title @param {Children} content */
export function section(title, content) {
  const id = `section-${title.toLowerCase().replaceAll(" ", "-")}`;
  return html`<section aria-labelledby=${id}><h2 id=${id}>${title}</h2>${content}</section>`;
}

/**
 * Renders a table. On a narrow screen, each row is a card that contains the names of the columns.
 *
 * @param {readonly string[]} columns The headings; empty for a column of buttons.
 * @param {readonly { key: string | number, cells: readonly Children[], class?: string | undefined, detail?: Children }[]} rows The rows. The `detail` is shown below the row over its whole width.
 * @param {{ caption?: string, class?: string }} [more]
 */
export function table(columns, rows, { caption, class: name = "" } = {}) {
  const cell = (/** @type {Children} */ content, /** @type {number} */ index) =>
    html`<td data-label=${columns[index]} class=${columns[index] === "" ? "action" : ""}>${content}</td>`;
  return html`<table class=${name}>
    ${caption && html`<caption class="visually-hidden">${caption}</caption>`}
    <thead><tr>${columns.map((column) => html`<th scope="col">${column || html`<span class="visually-hidden">Actions</span>`}</th>`)}</tr></thead>
    <tbody>${rows.map(
      ({ key, cells, class: rowName, detail }) =>
        html`<tr key=${key} class=${rowName}>${cells.map(cell)}</tr>
          ${detail && html`<tr key=${`${key} in detail`} class="detail"><td colspan=${columns.length}>${detail}</td></tr>`}`,
    )}</tbody>
  </table>`;
}

/** Renders a control with its label. @param {string} label @param {Children} control */
export const field = (label, control) => html`<label>${label}${control}</label>`;

/** Renders a text field. @param {Readonly<Record<string, unknown>>} attributes */
export const input = (attributes) =>
  html`<input type="text" autocomplete="off" spellcheck=${false} ...${attributes} />`;

/** Renders a choice between options. @param {string} name @param {readonly (readonly [value: string, text: string])[]} options */
export const select = (name, options) =>
  html`<select name=${name}>${options.map(([value, text]) => html`<option value=${value}>${text}</option>`)}</select>`;

/** @param {HTMLFormElement} form @returns {(name: string) => string} Returns the trimmed value of a field. */
export function textsOf(form) {
  const data = new FormData(form);
  return (name) => String(data.get(name) ?? "").trim();
}

/**
 * Shows a dialog until it is closed.
 *
 * @param {string} title
 * @param {Children} text
 * @param {Children} actions The buttons, whose values are the possible results.
 * @returns {Promise<string>} The value of the button; empty if the dialog was closed without one.
 */
export function dialog(title, text, actions) {
  const host = document.body.appendChild(document.createElement("div"));
  return new Promise((resolve) => {
    const close = (/** @type {Event} */ { currentTarget }) => {
      render(null, host);
      host.remove();
      resolve(currentTarget instanceof HTMLDialogElement ? currentTarget.returnValue : "");
    };
    const open = (/** @type {HTMLDialogElement | null} */ shown) => shown?.showModal();
    render(
      h(
        Fragment,
        null,
        html`<dialog aria-labelledby="dialog-title" onClose=${close} ref=${open}><article>
          <h2 id="dialog-title">${title}</h2>${text}<footer><form method="dialog">${actions}</form></footer>
        </article></dialog>`,
      ),
      host,
    );
  });
}

/**
 * Asks for confirmation before an action that cannot be undone.
 *
 * @param {{ title: string, text: Children, action: string, keep?: string }} question
 */
export async function confirm({ title, text, action, keep = "Cancel" }) {
  const answer = await dialog(
    title,
    html`<p>${text}</p>`,
    html`<button value="no" class="secondary outline" autofocus>${keep}</button><button value="yes" class="danger">${action}</button>`,
  );
  return answer === "yes";
}
