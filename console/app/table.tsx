import { delimiterFor } from "@tiltyard/protocol";
import type { ComponentType } from "preact";
import { ApiError, call } from "./api.ts";
import { may } from "./caller.ts";
import { Connect } from "./connect.tsx";
import { Rows } from "./data.tsx";
import { nameOf } from "./format.ts";
import { History } from "./history.tsx";
import { JobList } from "./jobs.tsx";
import { Lineage } from "./lineage.tsx";
import { Overview } from "./overview.tsx";
import { useAction, useCall, useTitle } from "./queries.ts";
import { linkTo, type PageProps } from "./routes.ts";
import { Schema } from "./schema.tsx";
import { BreadcrumbOf, Links } from "./shell.tsx";
import { Tags } from "./tags.tsx";
import { TransactionList } from "./transactions.tsx";
import { announce, CopyButton, Facts, Failure, Hint, Icon, Loaded, Mono, monoEntries, Note, Problem } from "./view.tsx";

/** The parts of a table's page by their name in the URL. */
const tabs: readonly (readonly [key: string, label: string, part: ComponentType<PageProps>])[] = [
  ["overview", "Overview", Overview],
  ["history", "History", History],
  ["schema", "Schema", Schema],
  ["lineage", "Lineage", Lineage],
  ["data", "Data", Rows],
  ["tags", "Tags", Tags],
  ["jobs", "Jobs", ofNamespace("jobs", JobList)],
  ["transactions", "Transactions", ofNamespace("transactions", TransactionList)],
  ["details", "Details", Details],
  ["connect", "Connect", Connect],
];

/** The page of a table with its versions, columns, rows, tags, jobs and transactions. */
export function TablePage(props: PageProps) {
  const { id, tab, caller } = props;
  const name = id.at(-1) ?? "";
  const [key, label, Part] = tabs.find(([each]) => each === tab) ?? tabs[0] ?? ["", "", () => null];
  useTitle(`${name}: ${label.toLowerCase()}`);
  const { error, refetch } = useCall("describeTable", { id, check_declared: true });
  if (error instanceof ApiError && error.status === 404)
    return (
      <>
        <BreadcrumbOf id={id} caller={caller} />
        <h1 tabIndex={-1}>{name}</h1>
        <Problem error={error} retry={refetch} />
        <Hint>
          It may have been renamed or dropped. Dropped tables are listed in their namespace; the{" "}
          <a href={linkTo("search", [], "names", { name })}>search</a> finds others by name.
        </Hint>
      </>
    );
  return (
    <>
      <BreadcrumbOf id={id} caller={caller} />
      <h1 tabIndex={-1}>{name}</h1>
      <Links
        label={`Parts of ${name}`}
        class="tabs"
        parts={tabs.map(([each, text]) => [each, text])}
        shown={key}
        href={(each) => linkTo("table", id, each)}
      />
      <section aria-label={label}>
        <Part key={key} {...props} />
      </section>
    </>
  );
}

/** Returns a component that restricts a list of a namespace to one table. */
function ofNamespace(what: string, List: typeof JobList | typeof TransactionList) {
  return ({ id, caller }: PageProps) => {
    const namespace = id.slice(0, -1);
    if (may(caller, "reader", namespace))
      return <List namespace={namespace} filter={{ table: id.join(delimiterFor(namespace)) }} />;
    return (
      <Note>
        The {what} of this table are for readers of {nameOf(namespace)}.
      </Note>
    );
  };
}

function Details({ id, caller }: PageProps) {
  const described = useCall("describeTable", { id, check_declared: true });
  const { run, failed } = useAction();
  return (
    <Loaded query={described}>
      {({ location, is_only_declared: isDeclared, properties }) => {
        const { protected: text, ...others } = properties ?? {};
        const isProtected = text === "true";
        const change = () =>
          run(async () => {
            await call(isProtected ? "unprotectTable" : "protectTable", { id });
            announce(isProtected ? "The table may be dropped now." : "The table is protected now.");
          });
        return (
          <>
            <Facts
              of={[
                [
                  "Identifier",
                  <>
                    <Mono>{nameOf(id)}</Mono>
                    <CopyButton text={nameOf(id)} what="identifier" />
                  </>,
                ],
                [
                  "Location",
                  <>
                    <Mono>{location}</Mono>
                    <CopyButton text={location ?? ""} what="location" />
                  </>,
                ],
                ["State", isDeclared ? "declared, nothing written yet" : "written"],
                [
                  "Protection",
                  isProtected ? (
                    <span class="badge accent">
                      <Icon name="lock" />
                      protected
                    </span>
                  ) : (
                    "may be dropped"
                  ),
                ],
                ...monoEntries(others),
              ]}
            />
            {may(caller, "admin", id) && (
              <button type="button" class="outline" onClick={change}>
                {isProtected ? "Allow to drop it" : "Protect it from being dropped"}
              </button>
            )}
            <Failure text={failed} />
          </>
        );
      }}
    </Loaded>
  );
}
