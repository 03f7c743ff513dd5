import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { type AnswerTo, ApiError } from "./api.ts";
import { bytes } from "./format.ts";
import { useCall } from "./queries.ts";
import type { PageProps } from "./routes.ts";
import { Empty, Hint, Loaded, Note, sentence, Table } from "./view.tsx";

type FirstRows = AnswerTo<"listTableRows">;
type Value = NonNullable<FirstRows["rows"][number][number]>;

const rowsAtFirst = 20;
const rowsMax = 100;
/** The maximum number of characters of a value on a single line. */
const shortMax = 24;
/** The maximum size of a thumbnail in CSS pixels. */
const thumbnailMax = { width: 160, height: 80 };

/** The first rows of a table. */
export function Rows({ id }: PageProps) {
  const [limit, setLimit] = useState(rowsAtFirst);
  const onMore = limit < rowsMax ? () => setLimit(rowsMax) : undefined;
  return (
    <Loaded query={useCall("listTableRows", { id, limit })} instead={instead}>
      {(found) => <FoundRows found={found} onMore={onMore} />}
    </Loaded>
  );
}

function instead(error: unknown) {
  if (!(error instanceof ApiError)) return undefined;
  if (error.status === 404)
    return (
      <Empty>
        <p>No rows.</p>
        <Hint>{sentence(error.message)}</Hint>
      </Empty>
    );
  return error.status === 406 ? <Note>{sentence(error.message)}</Note> : undefined;
}

interface FoundRowsProps {
  readonly found: FirstRows;
  readonly onMore: (() => void) | undefined;
}

function FoundRows({ found: { version, columns, columns_in_all: inAll, rows }, onMore }: FoundRowsProps) {
  if (rows.length === 0)
    return (
      <Empty>
        <p>Version {version} of this table has no rows.</p>
      </Empty>
    );
  const count = rows.length === 1 ? "One row" : `${rows.length} rows`;
  const among = columns.length < inAll ? `, with ${columns.length} of ${inAll} columns` : "";
  const hidden = <span class="hint">not shown</span>;
  const cellsOf = (row: FirstRows["rows"][number]) =>
    columns.map(({ is_shown: isShown }, index) => (isShown ? <Cell value={row[index] ?? null} /> : hidden));
  return (
    <>
      <Hint>{`${count} of version ${version}${among}. Long values are cut.`}</Hint>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls the rows. */}
      <section class="scroll" tabIndex={0} aria-label="Rows">
        <Table
          columns={columns.map(({ name }) => name)}
          rows={rows.map((row, key) => ({ key, cells: cellsOf(row) }))}
          class="data"
        />
      </section>
      {onMore && rows.length === rowsAtFirst && (
        <button type="button" class="quiet more" onClick={onMore}>
          Show up to {rowsMax} rows
        </button>
      )}
    </>
  );
}

function Cell({ value }: { readonly value: Value | null }) {
  if (value === null) return <span class="hint">null</span>;
  const { text, length, unit, image } = value;
  const size = length === undefined ? "" : unit === "bytes" ? bytes(length) : `${length} ${unit}`;
  const isImageAlone = image !== undefined && unit === "bytes";
  const label = isImageAlone ? `${text}, ${size}` : text;
  return (
    <div class="value">
      {image && <Thumbnail image={image} label={label} />}
      {!isImageAlone && <span class={text.length > shortMax ? "mono long" : "mono"}>{cutText(value)}</span>}
      {size !== "" && <span class="hint">{size}</span>}
    </div>
  );
}

/** Returns a text with a mark if it is truncated. */
function cutText({ text, length, unit }: Value): string {
  if (length === undefined) return text;
  if (unit === "items") return text.endsWith("]") ? `${text.slice(0, -1)}, …]` : `${text}…`;
  // Bytes are shown as two digits each; the text of an image is a description instead.
  const isWhole = unit === "bytes" && text.length + 1 >= 3 * length;
  return isWhole || text === "" || /^\w+ image$/.test(text) ? text : `${text} …`;
}

interface ThumbnailProps {
  readonly image: NonNullable<Value["image"]>;
  readonly label: string;
}

/**
 * Draws an image on a canvas, because the page's content security policy blocks all images but those of the console
 * itself. The bytes never have a URL.
 */
function Thumbnail({ image, label }: ThumbnailProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [isDamaged, setDamaged] = useState(false);
  useLayoutEffect(() => {
    if (canvas.current !== null) draw(image, canvas.current).catch(() => setDamaged(true));
  }, []);
  if (isDamaged) return <span class="hint">{label}, damaged</span>;
  return <canvas ref={canvas} role="img" aria-label={label} width="0" height="0" />;
}

async function draw({ media_type: type, base64 }: ThumbnailProps["image"], canvas: HTMLCanvasElement): Promise<void> {
  const content = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const bitmap = await createImageBitmap(new Blob([content], { type }));
  const scale = Math.min(1, thumbnailMax.width / bitmap.width, thumbnailMax.height / bitmap.height);
  const side = (length: number) => Math.max(1, Math.round(length * scale));
  const [width, height] = [side(bitmap.width), side(bitmap.height)];
  canvas.width = width * devicePixelRatio;
  canvas.height = height * devicePixelRatio;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  canvas.getContext("2d")?.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
}
