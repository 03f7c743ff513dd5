import { keepPreviousData, useQuery } from "@tanstack/preact-query";
import type { Identifier } from "@tiltyard/protocol";
import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "./api.ts";
import { entriesOf } from "./caller.ts";
import { amount, nameOf } from "./format.ts";
import { useTitle } from "./queries.ts";
import { goTo, linkTo, type PageProps } from "./routes.ts";
import { type Children, Empty, Field, Hint, Icon, Input, Loaded, Section } from "./view.tsx";

/** The maximum number of namespaces, of tables and of columns that a search shows. */
const limit = 200;
/** The pause in typing after which a search starts. */
const pauseMs = 200;

/** The page that finds namespaces, tables and columns by name. */
export function SearchPage({ caller, state }: PageProps) {
  useTitle("Search");
  return (
    <>
      <h1 tabIndex={-1}>Search</h1>
      <Search key={state.name} within={entriesOf(caller, "reader")} label="Name" text={state.name ?? ""} isPage>
        <Hint>
          Finds namespaces, tables and columns by a part of their name, or by the names around it:{" "}
          <code>production$films</code>, <code>films$title</code>. The key <kbd>/</kbd> opens this page from every
          other.
        </Hint>
      </Search>
    </>
  );
}

/** Navigates to the search when the user presses `/` outside a field. */
export function onSearchKey(event: KeyboardEvent): void {
  const isField = event.target instanceof Element && event.target.closest("input, select, textarea, dialog") !== null;
  if (event.key !== "/" || isField || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  goTo("search");
}

/** A field for a part of a name with the objects found in some namespaces, or with other content while it is empty. */
export function Search({
  within,
  label,
  text = "",
  isPage = false,
  children,
}: {
  readonly within: readonly Identifier[];
  readonly label: string;
  readonly text?: string;
  /** Focuses the field and keeps its text in the URL. */
  readonly isPage?: boolean;
  readonly children: Children;
}) {
  const field = useRef<HTMLDivElement>(null);
  const [typed, setTyped] = useState(text);
  const [name, setName] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setName(typed.trim()), pauseMs);
    return () => clearTimeout(timer);
  }, [typed]);
  // The focus of the heading, which every page begins with, is set before.
  useEffect(() => {
    if (isPage) field.current?.querySelector("input")?.focus();
  }, []);
  useEffect(() => {
    if (isPage && name !== text) history.replaceState(null, "", linkTo("search", [], "names", { name }));
  }, [name]);
  return (
    <>
      <div class="filters" ref={field}>
        <Field label={label}>
          <Input type="search" value={typed} onInput={({ currentTarget }) => setTyped(currentTarget.value)} />
        </Field>
      </div>
      {name === "" ? children : <Found within={within} name={name} />}
    </>
  );
}

function Found({ within, name }: { readonly within: readonly Identifier[]; readonly name: string }) {
  const found = useQuery({
    queryKey: ["search", within, name],
    queryFn: async ({ signal }) => {
      const answers = await Promise.all(within.map((id) => call("searchNamespace", { id, name, limit }, signal)));
      return {
        namespaces: answers.flatMap(({ namespaces }) => namespaces),
        tables: answers.flatMap(({ tables }) => tables),
        columns: answers.flatMap(({ columns }) => columns),
      };
    },
    placeholderData: keepPreviousData,
  });
  const more = (count: number) => count >= limit && <Hint>There may be more: type more of the name.</Hint>;
  return (
    <Loaded query={found}>
      {({ namespaces, tables, columns }) => (
        <>
          <p class="visually-hidden" role="status">
            {`${amount(namespaces.length, "namespace")}, ${amount(tables.length, "table")}, ${amount(columns.length, "column")}.`}
          </p>
          {namespaces.length > 0 && (
            <Section title="Namespaces">
              <Names kind="folder" items={namespaces.map((id) => [nameOf(id), linkTo("tables", id)])} />
              {more(namespaces.length)}
            </Section>
          )}
          {tables.length > 0 && (
            <Section title="Tables">
              <Names kind="table" items={tables.map((id) => [nameOf(id), linkTo("table", id)])} />
              {more(tables.length)}
            </Section>
          )}
          {columns.length > 0 && (
            <Section title="Columns">
              <Names
                kind="column"
                items={columns.map(({ table, column }) => [
                  column,
                  linkTo("table", table, "schema", { column }),
                  `in ${nameOf(table)}`,
                ])}
              />
              {more(columns.length)}
            </Section>
          )}
          {namespaces.length + tables.length + columns.length === 0 && (
            <Empty text={`Nothing has “${name}” in its name.`}>
              <Hint>You only find what you may read. New columns are found after a minute.</Hint>
            </Empty>
          )}
        </>
      )}
    </Loaded>
  );
}

/** A list of links to namespaces, tables or columns. */
export const Names = ({
  kind,
  items,
}: {
  readonly kind: "folder" | "table" | "column";
  readonly items: readonly (readonly [name: string, href: string, hint?: string | undefined])[];
}) => (
  <ul class="rows">
    {items.map(([name, href, hint]) => (
      <li key={href}>
        <a href={href}>
          <Icon name={kind} />
          <span>
            {name}
            {hint && <small> {hint}</small>}
          </span>
          <Icon name="chevron" />
        </a>
      </li>
    ))}
  </ul>
);
