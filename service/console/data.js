import { ApiError, listTableRows } from "./api.js";
import { h } from "./dom.js";
import { bytes } from "./format.js";
import { empty, loaded, note, sentence } from "./list.js";

/** @typedef {NonNullable<import("./api.js").FirstRows["rows"][number][number]>} Value */

const rowsAtFirst = 20;
const rowsMax = 100;
/** The characters of a value that stands on one line. */
const shortMax = 24;
/** In CSS pixels. */
const thumbnailMax = { width: 160, height: 80 };

/** The first rows of a table. @param {import("./main.js").PageContext} context */
export function data({ id, signal }) {
  const root = h("div");
  /** @param {number} limit */
  function show(limit) {
    root.replaceChildren(
      loaded(
        signal,
        () => listTableRows(id, limit, signal),
        (found) => rowsOf(found, limit < rowsMax ? () => show(rowsMax) : undefined),
        instead,
      ),
    );
  }
  show(rowsAtFirst);
  return root;
}

/** @param {unknown} error */
function instead(error) {
  if (!(error instanceof ApiError)) return undefined;
  if (error.status === 404) return empty(h("p", {}, "No rows."), h("p", { class: "hint" }, sentence(error.message)));
  return error.status === 406 ? note(sentence(error.message)) : undefined;
}

/** @param {import("./api.js").FirstRows} found @param {(() => void) | undefined} showMore */
function rowsOf({ version, columns, columns_in_all: inAll, rows }, showMore) {
  if (rows.length === 0) return empty(h("p", {}, `Version ${version} of this table has no rows.`));
  const facts = [
    rows.length === 1 ? "One row" : `${rows.length} rows`,
    ` of version ${version}`,
    columns.length < inAll ? `, with ${columns.length} of ${inAll} columns` : "",
    ". Long values are cut.",
  ].join("");
  const headings = columns.map(({ name }) => h("th", { scope: "col", class: "mono" }, name));
  const hidden = () => h("span", { class: "hint" }, "not shown");
  const body = rows.map((row) =>
    h(
      "tr",
      {},
      columns.map(({ name, is_shown: isShown }, index) =>
        h("td", { "data-label": name }, isShown ? cellOf(row[index] ?? null) : hidden()),
      ),
    ),
  );
  return h(
    "div",
    {},
    h("p", { class: "hint data-facts" }, facts),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Rows" },
      h("table", { class: "grid data" }, h("thead", {}, h("tr", {}, headings)), h("tbody", {}, body)),
    ),
    showMore !== undefined &&
      rows.length === rowsAtFirst &&
      h("button", { type: "button", class: "more quiet", onclick: showMore }, `Show up to ${rowsMax} rows`),
  );
}

/** @param {Value | null} value */
function cellOf(value) {
  if (value === null) return h("span", { class: "hint" }, "null");
  const { text, length, unit, image } = value;
  const size = length === undefined ? "" : unit === "bytes" ? bytes(length) : `${length} ${unit}`;
  const isImageAlone = image !== undefined && unit === "bytes";
  return h(
    "div",
    { class: "value" },
    image !== undefined && thumbnail(image, isImageAlone ? `${text}, ${size}` : text),
    !isImageAlone && h("span", { class: text.length > shortMax ? "mono long" : "mono" }, cutText(value)),
    size !== "" && h("span", { class: "hint" }, size),
  );
}

/** A text that shows where it was cut. @param {Value} value */
function cutText({ text, length, unit }) {
  if (length === undefined) return text;
  if (unit === "items") return text.endsWith("]") ? `${text.slice(0, -1)}, …]` : `${text}…`;
  // Of bytes the first are shown, each as two digits; an image has words.
  const isWhole = unit === "bytes" && text.length + 1 >= 3 * length;
  return isWhole || text === "" || /^\w+ image$/.test(text) ? text : `${text} …`;
}

/**
 * Draws an image on a canvas: the page's policy lets in no image but the console's own, and the bytes never get an address.
 *
 * @param {NonNullable<Value["image"]>} image
 * @param {string} label
 */
function thumbnail({ media_type: type, base64 }, label) {
  const canvas = h("canvas", { role: "img", "aria-label": label, width: "0", height: "0" });
  draw().catch(() => canvas.replaceWith(h("span", { class: "hint" }, `${label}, damaged`)));
  async function draw() {
    const content = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([content], { type }));
    const scale = Math.min(1, thumbnailMax.width / bitmap.width, thumbnailMax.height / bitmap.height);
    const ratio = devicePixelRatio;
    const [width, height] = [bitmap.width, bitmap.height].map((side) => Math.max(1, Math.round(side * scale)));
    canvas.width = (width ?? 1) * ratio;
    canvas.height = (height ?? 1) * ratio;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    canvas.getContext("2d")?.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    bitmap.close();
  }
  return canvas;
}
