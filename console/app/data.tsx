import { keepPreviousData } from "@tanstack/preact-query";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { type AnswerTo, ApiError, call, type RequestTo } from "./api.ts";
import { bytes } from "./format.ts";
import { mainBranch, useBranches } from "./history.tsx";
import { useCall } from "./queries.ts";
import type { PageProps } from "./routes.ts";
import {
  dialog,
  Empty,
  Field,
  Hint,
  Input,
  Loaded,
  messageOf,
  Note,
  Select,
  sentence,
  Table,
  textsOf,
} from "./view.tsx";

type FirstRows = AnswerTo<"listTableRows">;
type Value = NonNullable<FirstRows["rows"][number][number]>;

const pageSize = 20;
/** The maximum number of characters of a value on a single line. */
const shortMax = 24;
/** The maximum size of a thumbnail in CSS pixels. */
const thumbnailMax = { width: 160, height: 80 };

/** The rows of a table at a version of a branch, by page. */
export function Rows({ id, state }: PageProps) {
  const [search, setSearch] = useState<Search>({
    branch: state.branch ?? mainBranch,
    version: state.version ?? "",
    filter: "",
    sort: "",
    order: "",
  });
  const [offset, setOffset] = useState(0);
  const [hidden, setHidden] = useState<readonly string[]>([]);
  const [like, setLike] = useState<Example>();
  const { branch, filter, sort, order } = search;
  const request = {
    id,
    branch,
    ...(search.version !== "" && { version: Number(search.version) }),
    ...(filter !== "" && { filter }),
    ...(sort !== "" && { sort, descending: order === "descending" }),
    ...(like !== undefined && { like: like.column, like_row: like.row }),
  };
  function show(example: Example | undefined) {
    setOffset(0);
    setLike(example);
  }
  const rows = useCall("listTableRows", { ...request, limit: pageSize, offset }, { placeholderData: keepPreviousData });
  const names = rows.data?.columns.map(({ name }) => name) ?? [];
  function apply(event: Event) {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const text = textsOf(event.currentTarget);
    show(undefined);
    setSearch({
      branch: text("branch"),
      version: text("version"),
      filter: text("filter"),
      sort: text("sort"),
      order: text("order"),
    });
  }
  return (
    <>
      <form class="filters" onSubmit={apply} aria-label="Rows to show">
        <Branches id={id} branch={branch} />
        <Field label="Version">
          <Input
            name="version"
            inputMode="numeric"
            pattern="[0-9]*"
            placeholder="latest"
            defaultValue={search.version}
          />
        </Field>
        <Field label="Filter">
          <Input name="filter" placeholder="SQL, such as year > 1990" />
        </Field>
        <Field label="Sort by">
          <Select name="sort" options={[["", "none"], ...names.map((name) => [name, name] as const)]} />
        </Field>
        <Field label="Order">
          <Select
            name="order"
            options={[
              ["ascending", "ascending"],
              ["descending", "descending"],
            ]}
          />
        </Field>
        <button type="submit" class="secondary">
          Show
        </button>
      </form>
      <Loaded query={rows.error === null ? rows : { ...rows, data: undefined }} instead={instead}>
        {(found) => (
          <>
            <ColumnPicker names={names} hidden={hidden} onChange={setHidden} />
            {like && (
              <div class="buttons">
                <span>
                  The nearest to row {like.row + 1} by {like.column}.
                </span>
                <button type="button" class="outline small" onClick={() => show(undefined)}>
                  All rows
                </button>
              </div>
            )}
            <FoundRows
              found={found}
              hidden={hidden}
              offset={offset}
              request={request}
              {...(like === undefined && { onLike: show })}
            />
            <div class="buttons">
              <button
                type="button"
                class="outline small"
                disabled={offset === 0}
                onClick={() => setOffset(Math.max(0, offset - pageSize))}
              >
                Previous rows
              </button>
              <button
                type="button"
                class="outline small"
                disabled={found.next_offset === undefined && found.rows.length < pageSize}
                onClick={() => setOffset(found.next_offset ?? offset + pageSize)}
              >
                Next rows
              </button>
            </div>
          </>
        )}
      </Loaded>
    </>
  );
}

/** A row whose vector orders the other rows. */
interface Example {
  readonly column: string;
  readonly row: number;
}

type Search = Readonly<Record<"branch" | "version" | "filter" | "sort" | "order", string>>;

function Branches({ id, branch }: { readonly id: PageProps["id"]; readonly branch: string }) {
  const { data = {} } = useBranches(id);
  const names = new Set([mainBranch, branch, ...Object.keys(data).sort()]);
  return (
    <Field label="Branch">
      <Select name="branch" value={branch} options={[...names].map((name) => [name, name] as const)} />
    </Field>
  );
}

function ColumnPicker({
  names,
  hidden,
  onChange,
}: {
  readonly names: readonly string[];
  readonly hidden: readonly string[];
  readonly onChange: (hidden: readonly string[]) => void;
}) {
  const toggle = (name: string) =>
    onChange(hidden.includes(name) ? hidden.filter((each) => each !== name) : [...hidden, name]);
  return (
    <details class="columns">
      <summary>Columns</summary>
      <fieldset>
        <legend class="visually-hidden">Columns to show</legend>
        {names.map((name) => (
          <label key={name}>
            <input type="checkbox" checked={!hidden.includes(name)} onChange={() => toggle(name)} />
            {name}
          </label>
        ))}
      </fieldset>
    </details>
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

type RowsRequest = RequestTo<"listTableRows">;

interface FoundRowsProps {
  readonly found: FirstRows;
  readonly hidden: readonly string[];
  readonly offset: number;
  readonly request: RowsRequest;
  /** Shows the rows that are similar to one. */
  readonly onLike?: (example: Example) => void;
}

function FoundRows({ found, hidden, offset, request, onLike }: FoundRowsProps) {
  const { version, columns, columns_in_all: inAll, rows } = found;
  if (rows.length === 0)
    return (
      <Empty>
        {offset > 0 || request.filter !== undefined ? (
          <p>No more rows match.</p>
        ) : (
          <p>Version {version} of this table has no rows.</p>
        )}
      </Empty>
    );
  const count = rows.length === 1 ? "One row" : `${rows.length} rows`;
  const among = columns.length < inAll ? `, with ${columns.length} of ${inAll} columns` : "";
  const unknown = <span class="hint">not shown</span>;
  const chosen = columns.map((column, index) => ({ ...column, index })).filter(({ name }) => !hidden.includes(name));
  return (
    <>
      <Hint>{`${count} of version ${version}, from row ${offset + 1}${among}. Long values are cut.`}</Hint>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls the rows. */}
      <section class="scroll" tabIndex={0} aria-label="Rows">
        <Table
          columns={chosen.map(({ name }) => name)}
          rows={rows.map((row, key) => ({
            key,
            cells: chosen.map(({ name, index, is_shown: isShown }) =>
              isShown ? (
                <Cell
                  key={name}
                  value={row[index] ?? null}
                  request={{ ...request, columns: [name], offset: offset + key, limit: 1 }}
                  {...(onLike && { onLike: () => onLike({ column: name, row: offset + key }) })}
                />
              ) : (
                unknown
              ),
            ),
          }))}
          class="data"
        />
      </section>
    </>
  );
}

/** Shows a whole value in a dialog. */
async function showWhole(request: RowsRequest): Promise<void> {
  const text = await call("listTableRows", { ...request, whole: true }).then(
    ({ rows }) => rows[0]?.[0]?.text ?? "null",
    (error) => messageOf(error),
  );
  const content = <pre class="log">{text}</pre>;
  await dialog(String(request.columns), content, <button type="submit">Close</button>);
}

function Cell({
  value,
  request,
  onLike,
}: {
  readonly value: Value | null;
  /** The request for this value alone. */
  readonly request: RowsRequest;
  readonly onLike?: () => void;
}) {
  if (value === null) return <span class="hint">null</span>;
  const { text, length, unit, image } = value;
  const size = length === undefined ? "" : unit === "bytes" ? bytes(length) : `${length} ${unit}`;
  if (image === undefined && unit === "bytes" && imageName.test(text))
    return <OmittedImage request={request} label={`${text}, ${size}`} />;
  const isImageAlone = image !== undefined && unit === "bytes";
  const label = isImageAlone ? `${text}, ${size}` : text;
  return (
    <div class="value">
      {image && <Thumbnail image={image} label={label} />}
      {!isImageAlone && <span class={text.length > shortMax ? "mono long" : "mono"}>{cutText(value)}</span>}
      {size !== "" && <span class="hint">{size}</span>}
      {length !== undefined && unit !== "bytes" && (
        <button type="button" class="quiet small" onClick={() => showWhole(request)}>
          Whole value
        </button>
      )}
      {onLike && isVector(value) && (
        <button type="button" class="quiet small" onClick={onLike}>
          More like this
        </button>
      )}
    </div>
  );
}

/** The text of an image. */
const imageName = /^\w+ image$/;

/** An image that the list of rows omits because of its size: loaded by a request of its own, unless it is too large. */
function OmittedImage({ request, label }: { readonly request: RowsRequest; readonly label: string }) {
  const { data } = useCall("listTableRows", request);
  const image = data?.rows[0]?.[0]?.image;
  return image === undefined ? <span class="mono">{label}</span> : <Thumbnail image={image} label={label} />;
}

/** Reports whether a value looks like a vector, whose items are numbers. */
const isVector = ({ text, unit }: Value) => unit === "items" && /^\[-?\d/.test(text);

/** Returns a text with a mark if it is truncated. */
function cutText({ text, length, unit }: Value): string {
  if (length === undefined) return text;
  if (unit === "items") return text.endsWith("]") ? `${text.slice(0, -1)}, …]` : `${text}…`;
  // Bytes are shown as two digits each; the text of an image is a description instead.
  const isWhole = unit === "bytes" && text.length + 1 >= 3 * length;
  return isWhole || text === "" || imageName.test(text) ? text : `${text} …`;
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
