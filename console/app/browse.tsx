import type { Identifier } from "@tiltyard/protocol";
import { call } from "./api.ts";
import { type Caller, entriesOf, may } from "./caller.ts";
import { dateAndTime, nameOf } from "./format.ts";
import { Functions, Secrets } from "./functions.tsx";
import { Pages, titleOf } from "./list.tsx";
import { itemsOf, useAction, useCall, useList, useTitle } from "./queries.ts";
import { goTo, linkTo, type PageProps } from "./routes.ts";
import { Names, Search } from "./search.tsx";
import { BreadcrumbOf } from "./shell.tsx";
import {
  announce,
  Empty,
  Facts,
  Failure,
  Field,
  Hint,
  Input,
  Loaded,
  Mono,
  monoEntries,
  Section,
  SmallButton,
  Table,
  Time,
} from "./view.tsx";

const limit = 200;

/** The page of the namespaces and tables of a namespace. A caller without a role on the root starts at its grants. */
export function BrowsePage(props: PageProps) {
  const { id, caller } = props;
  const title = id.at(-1) ?? "Catalog";
  useTitle(title);
  if (id.length > 0 || may(caller, "reader", [])) return <NamespacePage {...props} title={title} />;
  return (
    <>
      <h1 tabIndex={-1}>Catalog</h1>
      <Entries caller={caller} />
    </>
  );
}

function Entries({ caller }: { readonly caller: Caller }) {
  const entries = entriesOf(caller, "reader");
  if (entries.length === 0)
    return (
      <Empty text="You have no role anywhere in this catalog yet.">
        <Hint>Ask an admin to grant {caller.principal} one.</Hint>
      </Empty>
    );
  return (
    <Section title="What you were given">
      <Names kind="folder" items={entries.map((entry) => [nameOf(entry), linkTo("tables", entry)])} />
    </Section>
  );
}

function NamespacePage({ title, id, caller }: PageProps & { readonly title: string }) {
  const namespace = useCall("describeNamespace", { id });
  return (
    <>
      {id.length > 0 && <BreadcrumbOf id={id} caller={caller} />}
      <div class="heading">
        <h1 tabIndex={-1}>{title}</h1>
        <a href={linkTo("jobs", id)}>Jobs here</a>
        <a href={linkTo("transactions", id)}>Transactions here</a>
        {may(caller, "writer", id) && <CreateNamespace id={id} />}
      </div>
      <Loaded query={namespace}>
        {({ properties }) => (
          <>
            <Facts of={monoEntries(properties)} />
            <Search within={[id]} label="Filter by name">
              <Namespaces id={id} />
              <Tables id={id} />
            </Search>
            <Functions id={id} mayDrop={may(caller, "writer", id)} />
            <Secrets id={id} />
            {may(caller, "writer", id) && <DroppedTables id={id} />}
          </>
        )}
      </Loaded>
    </>
  );
}

interface Props {
  readonly id: Identifier;
}

function CreateNamespace({ id }: Props) {
  const { ask } = useAction();
  const field = (
    <Field label="Name">
      <Input name="name" required />
    </Field>
  );
  const create = () =>
    ask(`Create a namespace in ${nameOf(id)}`, field, "Create the namespace", async (text) => {
      const created = [...id, text("name")];
      await call("createNamespace", { id: created });
      announce(`${nameOf(created)} is created.`);
      goTo("tables", created);
    });
  return <SmallButton onClick={create}>Create a namespace</SmallButton>;
}

/** The namespace of the records of jobs and functions, which is the last one. */
const systemNamespace = "__system";

function Namespaces({ id }: Props) {
  const list = useList("listNamespaces", { id, limit }, ({ namespaces }) => namespaces);
  if (itemsOf(list)?.length === 0 && !list.hasNextPage) return null;
  const isSystem = (name: string) => id.length === 0 && name === systemNamespace;
  const inOrder = (names: readonly string[]) => names.toSorted((a, b) => Number(isSystem(a)) - Number(isSystem(b)));
  return (
    <Section title={titleOf("Namespaces", list)}>
      <Pages
        list={list}
        show={(names) => (
          <Names
            kind="folder"
            items={inOrder(names).map((name) => [
              name,
              linkTo("tables", [...id, name]),
              isSystem(name) ? "records of jobs and functions, which Tiltyard and Geneva keep" : undefined,
            ])}
          />
        )}
        empty={() => null}
        more="Show more namespaces"
      />
    </Section>
  );
}

function Tables({ id }: Props) {
  const list = useList("listTables", { id, limit }, ({ tables }) => tables);
  return (
    <Section title={titleOf("Tables", list)}>
      <Pages
        list={list}
        show={(names) => <Names kind="table" items={names.map((name) => [name, linkTo("table", [...id, name])])} />}
        empty={() => (
          <Hint>
            No tables here. A table appears as soon as a Lance client declares or writes one, such as{" "}
            <code>lancedb.connect_namespace("rest", …).create_table(…)</code> at {new URL(".", document.baseURI).href}.
          </Hint>
        )}
        more="Show more tables"
      />
    </Section>
  );
}

/** The dropped tables that can be undropped; nothing without any. */
function DroppedTables({ id }: Props) {
  const list = useList("listDroppedTables", { id, limit }, (answer) => answer.dropped_tables);
  const { run, failed } = useAction();
  const undrop = (dropped: { readonly id: string[]; readonly dropped_id: number }) =>
    run(async () => {
      const { id: back } = await call("undropTable", dropped);
      announce(`${nameOf(back)} is back.`);
      goTo("table", back);
    });
  if (list.error === null && !itemsOf(list)?.length) return null;
  return (
    <Section title={titleOf("Dropped tables", list)}>
      <Pages
        list={list}
        show={(items) => (
          <Table
            columns={["Table", "Dropped", "Kept until", ""]}
            rows={items.map((dropped) => ({
              key: dropped.dropped_id,
              cells: [
                <Mono>{nameOf(dropped.id)}</Mono>,
                <Time at={dropped.dropped_at_millis} />,
                dateAndTime(dropped.kept_until_millis),
                <SmallButton
                  aria-label={`Bring ${nameOf(dropped.id)} back`}
                  onClick={() => undrop({ id: dropped.id, dropped_id: dropped.dropped_id })}
                >
                  Bring back
                </SmallButton>,
              ],
            }))}
          />
        )}
        empty={() => null}
        more="Show more dropped tables"
      />
      <Failure text={failed} />
    </Section>
  );
}
