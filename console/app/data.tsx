import { keepPreviousData } from "@tanstack/preact-query";
import { useState } from "preact/hooks";
import { type AnswerTo, ApiError, type RequestTo } from "./api.ts";
import { counted } from "./format.ts";
import { mainBranch, useBranches } from "./history.tsx";
import { useCall } from "./queries.ts";
import type { PageProps } from "./routes.ts";
import { Cell } from "./value.tsx";
import { Empty, Field, Hint, Input, Loaded, Select, SmallButton, sentence, textsOf, unsupported } from "./view.tsx";

type FirstRows = AnswerTo<"listTableRows">;

const pageSize = 20;
/** The maximum number of columns that the catalog returns, and shows without a choice. */
const columnsMax = 64;
/** The number of columns above which they have a filter. */
const filteredMin = 20;

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
  const [chosen, setChosen] = useState<readonly string[]>();
  const [like, setLike] = useState<Example>();
  const { branch, filter, sort, order } = search;
  const request = {
    id,
    branch,
    ...(search.version !== "" && { version: Number(search.version) }),
    ...(filter !== "" && { filter }),
    ...(sort !== "" && { sort, descending: order === "descending" }),
    ...(like !== undefined && { like: like.column, like_row: like.row }),
    ...(chosen !== undefined && chosen.length > 0 && { columns: [...chosen] }),
  };
  function show(example: Example | undefined) {
    setOffset(0);
    setLike(example);
  }
  const rows = useCall("listTableRows", { ...request, limit: pageSize, offset }, { placeholderData: keepPreviousData });
  const shown = rows.data?.columns.map(({ name }) => name) ?? [];
  const described = useCall("describeTable", { id, load_detailed_metadata: true });
  // Another version may have other columns.
  const names = [...new Set([...(described.data?.schema?.fields.map(({ name }) => name) ?? []), ...shown])];
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
          <Select name="sort" options={[["", "none"], ...names]} />
        </Field>
        <Field label="Order">
          <Select name="order" options={["ascending", "descending"]} />
        </Field>
        <button type="submit" class="secondary">
          Show
        </button>
      </form>
      <Loaded
        query={rows.error === null ? rows : { ...rows, data: undefined }}
        instead={(error) => instead(error, search)}
      >
        {(found) => (
          <>
            <ColumnPicker names={names} chosen={chosen ?? shown} onChange={setChosen} />
            {like && (
              <div class="buttons">
                <span>
                  The nearest to row {like.row + 1} by {like.column}.
                </span>
                <SmallButton onClick={() => show(undefined)}>All rows</SmallButton>
              </div>
            )}
            {chosen?.length === 0 ? (
              <Empty text="No column is chosen." />
            ) : (
              <FoundRows
                found={found}
                offset={offset}
                request={request}
                {...(like === undefined && { onLike: show })}
              />
            )}
            <div class="buttons">
              <SmallButton disabled={offset === 0} onClick={() => setOffset(Math.max(0, offset - pageSize))}>
                Previous rows
              </SmallButton>
              <SmallButton
                disabled={found.next_offset === undefined && found.rows.length < pageSize}
                onClick={() => setOffset(found.next_offset ?? offset + pageSize)}
              >
                Next rows
              </SmallButton>
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
      <Select name="branch" value={branch} options={[...names]} />
    </Field>
  );
}

function ColumnPicker({
  names,
  chosen,
  onChange,
}: {
  readonly names: readonly string[];
  readonly chosen: readonly string[];
  /** Receives the chosen columns; undefined for the first ones. */
  readonly onChange: (chosen: readonly string[] | undefined) => void;
}) {
  const [text, setText] = useState("");
  const isFull = chosen.length >= columnsMax;
  const toggle = (name: string) =>
    onChange(names.filter((each) => (each === name ? !chosen.includes(each) : chosen.includes(each))));
  return (
    <details class="columns">
      <summary>{`Columns (${chosen.length} of ${names.length})`}</summary>
      <div class="filters">
        {names.length > filteredMin && (
          <Field label="Filter columns by name">
            <Input type="search" value={text} onInput={({ currentTarget }) => setText(currentTarget.value.trim())} />
          </Field>
        )}
        <div class="buttons">
          <SmallButton onClick={() => onChange(undefined)}>
            {names.length > columnsMax ? `First ${columnsMax}` : "All columns"}
          </SmallButton>
          <SmallButton onClick={() => onChange([])}>No column</SmallButton>
        </div>
      </div>
      {isFull && names.length > columnsMax && (
        <Hint>At most {columnsMax} columns are shown: uncheck one to show another.</Hint>
      )}
      <fieldset>
        <legend class="visually-hidden">Columns to show</legend>
        {names
          .filter((name) => name.toLowerCase().includes(text.toLowerCase()))
          .map((name) => (
            <label key={name}>
              <input
                type="checkbox"
                checked={chosen.includes(name)}
                disabled={isFull && !chosen.includes(name)}
                onChange={() => toggle(name)}
              />
              {name}
            </label>
          ))}
      </fieldset>
    </details>
  );
}

/** Renders an expected error. A column that a filter or an order names may be missing, which is an error of the form. */
function instead(error: unknown, { filter, sort }: Search) {
  if (error instanceof ApiError && error.status === 404 && filter === "" && sort === "")
    return (
      <Empty text="No rows.">
        <Hint>{sentence(error.message)}</Hint>
      </Empty>
    );
  return unsupported(error);
}

type RowsRequest = RequestTo<"listTableRows">;

interface FoundRowsProps {
  readonly found: FirstRows;
  readonly offset: number;
  readonly request: RowsRequest;
  /** Shows the rows that are similar to one. */
  readonly onLike?: (example: Example) => void;
}

function FoundRows({ found, offset, request, onLike }: FoundRowsProps) {
  const { version, columns, columns_in_all: inAll, rows, distances } = found;
  const { id = [], branch = mainBranch, filter } = request;
  const { data: count } = useCall("countTableRows", { id, branch, version, ...(filter && { predicate: filter }) });
  if (rows.length === 0)
    return (
      <Empty
        text={
          offset > 0 || filter !== undefined ? "No more rows match." : `Version ${version} of this table has no rows.`
        }
      />
    );
  const of = count === undefined ? "" : ` of ${counted(count)}${filter === undefined ? "" : " matches"}`;
  const among = columns.length < inAll ? `, ${columns.length} of ${counted(inAll)} columns` : "";
  return (
    <>
      <Hint>{`${counted(offset + 1)}–${counted(offset + rows.length)}${of}, version ${version}${among}`}</Hint>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls the rows. */}
      <section class="scroll" tabIndex={0} aria-label="Rows">
        <table class="data">
          <thead>
            <tr>
              {distances && <th scope="col">Distance</th>}
              {columns.map(({ name, type }) => (
                <th scope="col" key={name} class={isNumber(type) ? "number" : ""}>
                  {name}
                  <small title={type}>{shortType(type)}</small>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, key) => (
              <tr key={key}>
                {distances && <td class="mono number">{distances[key]?.toPrecision(4)}</td>}
                {columns.map(({ name, type, is_shown: isShown }, index) => (
                  <td key={name} class={isNumber(type) ? "number" : ""}>
                    {isShown ? (
                      <Cell
                        value={row[index] ?? null}
                        type={type}
                        request={{ ...request, columns: [name], offset: offset + key, limit: 1 }}
                        {...(onLike && { onLike: () => onLike({ column: name, row: offset + key }) })}
                      />
                    ) : (
                      <span class="hint">not shown</span>
                    )}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </>
  );
}

const isNumber = (type: string) => /^(u?int|float|decimal)/.test(type);

/** Returns a type as the header of its column shows it: `768 × float32` for a vector. */
const shortType = (type: string) => type.replace(/^fixed_size_list<(.+), (\d+)>$/, "$2 × $1");
