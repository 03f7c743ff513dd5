import { ApiError, call } from "./calls.js";
import { bytes } from "./format.js";
import { useLayoutEffect, useRef, useState } from "./libraries/hooks.js";
import { shown, useLoaded } from "./loading.js";
import { empty, hint, html, note, sentence, table } from "./view.js";

/**
 * @typedef {import("./format.js").Identifier} Identifier
 * @typedef {import("./calls.js").AnswerTo<"listTableRows">} FirstRows
 * @typedef {NonNullable<FirstRows["rows"][number][number]>} Value
 */

const rowsAtFirst = 20;
const rowsMax = 100;
/** The maximum number of characters of a value on a single line. */
const shortMax = 24;
/** The maximum size of a thumbnail in CSS pixels. */
const thumbnailMax = { width: 160, height: 80 };

/** Shows the first rows of a table. @param {import("./main.js").PageProps} props */
export function Rows({ id }) {
  const [limit, setLimit] = useState(rowsAtFirst);
  const onMore = limit < rowsMax ? () => setLimit(rowsMax) : undefined;
  return html`<${RowsUpTo} key=${limit} id=${id} limit=${limit} onMore=${onMore} />`;
}

/** @param {{ id: Identifier, limit: number, onMore: (() => void) | undefined }} props */
function RowsUpTo({ id, limit, onMore }) {
  const loaded = useLoaded((signal) => call("listTableRows", { id, limit }, signal));
  return shown(loaded, (found) => rowsOf(found, onMore), instead);
}

/** @param {unknown} error */
function instead(error) {
  if (!(error instanceof ApiError)) return undefined;
  if (error.status === 404) return empty(html`<p>No rows.</p>${hint(sentence(error.message))}`);
  return error.status === 406 ? note(sentence(error.message)) : undefined;
}

/** @param {FirstRows} found @param {(() => void) | undefined} onMore */
function rowsOf({ version, columns, columns_in_all: inAll, rows }, onMore) {
  if (rows.length === 0) return empty(html`<p>Version ${version} of this table has no rows.</p>`);
  const count = rows.length === 1 ? "One row" : `${rows.length} rows`;
  const among = columns.length < inAll ? `, with ${columns.length} of ${inAll} columns` : "";
  const hidden = html`<span class="hint">not shown</span>`;
  const cellsOf = (/** @type {FirstRows["rows"][number]} */ row) =>
    columns.map(({ is_shown: isShown }, index) => (isShown ? cellOf(row[index] ?? null) : hidden));
  const names = columns.map(({ name }) => name);
  return html`
    ${hint(`${count} of version ${version}${among}. Long values are cut.`)}
    <div class="scroll" tabindex="0" role="region" aria-label="Rows">
      ${table(
        names,
        rows.map((row, key) => ({ key, cells: cellsOf(row) })),
        { class: "data" },
      )}
    </div>
    ${onMore && rows.length === rowsAtFirst && html`<button type="button" class="quiet more" onClick=${onMore}>Show up to ${rowsMax} rows</button>`}`;
}

/** @param {Value | null} value */
function cellOf(value) {
  if (value === null) return html`<span class="hint">null</span>`;
  const { text, length, unit, image } = value;
  const size = length === undefined ? "" : unit === "bytes" ? bytes(length) : `${length} ${unit}`;
  const isImageAlone = image !== undefined && unit === "bytes";
  const label = isImageAlone ? `${text}, ${size}` : text;
  return html`<div class="value">
    ${image && html`<${Thumbnail} image=${image} label=${label} />`}
    ${!isImageAlone && html`<span class=${text.length > shortMax ? "mono long" : "mono"}>${cutText(value)}</span>`}
    ${size !== "" && html`<span class="hint">${size}</span>`}
  </div>`;
}

/** Returns a text with a mark if it is truncated. @param {Value} value */
function cutText({ text, length, unit }) {
  if (length === undefined) return text;
  if (unit === "items") return text.endsWith("]") ? `${text.slice(0, -1)}, …]` : `${text}…`;
  // Bytes are shown as two digits each; the text of an image is a description instead.
  const isWhole = unit === "bytes" && text.length + 1 >= 3 * length;
  return isWhole || text === "" || /^\w+ image$/.test(text) ? text : `${text} …`;
}

/**
 * Draws an image on a canvas, because the page's content security policy blocks all images but those of the console
 * itself. The bytes never have a URL.
 *
 * @param {{ image: NonNullable<Value["image"]>, label: string }} props
 */
function Thumbnail({ image, label }) {
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const [isDamaged, setDamaged] = useState(false);
  useLayoutEffect(() => {
    if (canvas.current !== null) draw(image, canvas.current).catch(() => setDamaged(true));
  }, []);
  if (isDamaged) return html`<span class="hint">${label}, damaged</span>`;
  return html`<canvas ref=${canvas} role="img" aria-label=${label} width="0" height="0" />`;
}

/** @param {NonNullable<Value["image"]>} image @param {HTMLCanvasElement} canvas */
async function draw({ media_type: type, base64 }, canvas) {
  const content = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const bitmap = await createImageBitmap(new Blob([content], { type }));
  const scale = Math.min(1, thumbnailMax.width / bitmap.width, thumbnailMax.height / bitmap.height);
  const side = (/** @type {number} */ length) => Math.max(1, Math.round(length * scale));
  const [width, height] = [side(bitmap.width), side(bitmap.height)];
  canvas.width = width * devicePixelRatio;
  canvas.height = height * devicePixelRatio;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  canvas.getContext("2d")?.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
}
