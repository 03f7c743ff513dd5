import { ApiError } from "./api.js";
import { announce, h } from "./dom.js";

/** How often a search goes on by itself when a page has nothing and is not the last. */
const emptyPagesMax = 20;

/** What went wrong, in words, with what to do. @param {unknown} error @param {() => void} retry */
export function problem(error, retry) {
  const message = error instanceof ApiError ? sentence(error.message) : `The console failed: ${error}`;
  return h(
    "div",
    { class: "problem", role: "alert" },
    h("p", {}, message),
    h("button", { type: "button", onclick: retry }, "Try again"),
  );
}

/** What the catalog says of an error begins like the middle of a sentence. @param {string} text */
export function sentence(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.?!]$/.test(text) ? "" : "."}`;
}

/** @param {string} [text] */
export function loading(text = "Loading…") {
  return h("p", { class: "loading", role: "status" }, text);
}

/** @param {...import("./dom.js").Child} children */
export function empty(...children) {
  return h("div", { class: "empty" }, ...children);
}

/** Why something cannot be shown, when that is no error. @param {...import("./dom.js").Child} children */
export function note(...children) {
  return h("p", { class: "note" }, ...children);
}

/**
 * A table.
 *
 * @param {readonly string[]} columns Their headings; an empty one is that of buttons.
 * @param {HTMLElement} body
 * @param {{ caption?: string, class?: string }} [more]
 */
export function grid(columns, body, { caption, class: name = "" } = {}) {
  const headings = columns.map((column) =>
    h("th", { scope: "col" }, column === "" ? h("span", { class: "visually-hidden" }, "Actions") : column),
  );
  return h(
    "table",
    { class: `grid ${name}` },
    caption !== undefined && h("caption", { class: "visually-hidden" }, caption),
    h("thead", {}, h("tr", {}, headings)),
    body,
  );
}

/**
 * Shows what a promise gives, with its waiting and its failing.
 *
 * @template Result
 * @param {AbortSignal} signal
 * @param {() => Promise<Result>} load
 * @param {(result: Result) => Node} show
 * @param {(error: unknown) => Node | undefined} [instead] What to show for a failure that is expected.
 */
export function loaded(signal, load, show, instead) {
  const frame = h("div", { class: "loaded" });
  async function start() {
    frame.replaceChildren(loading());
    try {
      const result = await load();
      if (!signal.aborted) frame.replaceChildren(show(result));
    } catch (error) {
      if (!signal.aborted) frame.replaceChildren(instead?.(error) ?? problem(error, start));
    }
  }
  start();
  return frame;
}

/**
 * A list that is read page by page.
 *
 * @template Item
 * @param {object} options
 * @param {AbortSignal} options.signal
 * @param {(pageToken: string | undefined) => Promise<{ items: readonly Item[], next: string | undefined }>} options.load
 * @param {HTMLElement} options.frame What is shown once there are items.
 * @param {HTMLElement} [options.into] What the rows are put into; the frame when absent.
 * @param {(item: Item) => Node | readonly Node[]} options.row
 * @param {() => Node} options.empty
 * @param {string} options.more
 */
export function paged({ signal, load, frame, into = frame, row, empty: showEmpty, more }) {
  const root = h("div", { class: "loaded" });
  let shown = 0;

  /** @param {string | undefined} token */
  async function next(token) {
    const isFirst = token === undefined;
    const button = root.querySelector(":scope > .more");
    // A button loses the focus when it is disabled.
    const hadFocus = button !== null && button === document.activeElement;
    if (isFirst) root.replaceChildren(loading());
    button?.setAttribute("disabled", "");
    try {
      let page = await load(token);
      for (let tries = 0; page.items.length === 0 && page.next !== undefined && tries < emptyPagesMax; tries += 1)
        page = await load(page.next);
      if (signal.aborted) return;
      show(page, hadFocus);
    } catch (error) {
      if (signal.aborted) return;
      button?.remove();
      const failed = problem(error, () => {
        failed.remove();
        next(token);
      });
      if (isFirst) root.replaceChildren(failed);
      else root.append(failed);
    }
  }

  /** @param {{ items: readonly Item[], next: string | undefined }} page @param {boolean} hadFocus Of the button that asked for the page. */
  function show({ items, next: token }, hadFocus) {
    const rows = items.flatMap((item) => row(item));
    into.append(...rows);
    shown += items.length;
    const button =
      token !== undefined && h("button", { type: "button", class: "more quiet", onclick: () => next(token) }, more);
    root.replaceChildren(shown === 0 && !button ? showEmpty() : frame, ...(button ? [button] : []));
    if (shown > items.length) announce(`${items.length} more.`);
    if (!hadFocus) return;
    // The button that was pressed is gone: go on from the first of the new rows.
    const [first] = rows;
    const target = first instanceof Element ? first.querySelector("a, button") : null;
    if (target instanceof HTMLElement) target.focus();
  }

  next(undefined);
  return root;
}
