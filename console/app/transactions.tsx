import { type Identifier, openStatuses, transactionStatuses } from "@tiltyard/protocol";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { AnswerTo } from "./api.ts";
import { type Chosen, Filtered } from "./filters.tsx";
import { amount, dateAndTime, nameOf } from "./format.ts";
import { Pages } from "./list.tsx";
import { itemsOf, polling, staleness, useList, useTitle } from "./queries.ts";
import type { PageProps } from "./routes.ts";
import {
  announce,
  Empty,
  Facts,
  Field,
  Hint,
  Mono,
  monoEntries,
  type Row,
  Select,
  Status,
  Table,
  Time,
} from "./view.tsx";

type Transaction = AnswerTo<"listTransactions">["transactions"][number];

interface Filter {
  readonly table?: string;
  readonly principal?: string;
  readonly status?: Transaction["status"][];
  readonly since_millis?: number | undefined;
}

const limit = 50;
const pollEveryMs = 3_000;
const objectsMax = 2;
const columns = ["Status", "Operation", "Objects", "Principal", "Opened"];

const moreFilters = (
  <>
    <Field label="Status">
      <Select name="status" options={[["", "any"], [openStatuses.join(","), "not over yet"], ...transactionStatuses]} />
    </Field>
    <Field label="Opened in">
      <Select
        name="since"
        options={[
          ["", "any time"],
          ["900000", "the last 15 minutes"],
          ["86400000", "the last day"],
          ["604800000", "the last week"],
        ]}
      />
    </Field>
  </>
);

/** The page of the transactions of a namespace, updated live. */
export function TransactionsPage({ id, caller }: PageProps) {
  useTitle("Transactions");
  return (
    <>
      <h1 tabIndex={-1}>Transactions</h1>
      <Filtered id={id} caller={caller} more={moreFilters} show={(chosen) => <Found chosen={chosen} />} />
    </>
  );
}

function Found({ chosen }: { readonly chosen: Chosen }) {
  // The period begins at the time of the choice, so that the request remains the same afterwards.
  const filter = useMemo(() => {
    const { text } = chosen;
    const status = transactionStatuses.filter((each) => text("status").split(",").includes(each));
    const since_millis = text("since") === "" ? undefined : Date.now() - Number(text("since"));
    return { ...chosen.filter, status, since_millis };
  }, [chosen]);
  return <TransactionList namespace={chosen.namespace} filter={filter} />;
}

/** The transactions of a namespace, the latest first. While it is live, they are updated. */
export function TransactionList({ namespace, filter }: { readonly namespace: Identifier; readonly filter: Filter }) {
  const [isLive, setLive] = useState(true);
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const request = { id: namespace, ...filter, limit };
  const list = useList(
    "listTransactions",
    request,
    (answer) => answer.transactions,
    isLive ? polling(pollEveryMs) : {},
  );
  const fresh = useFresh(itemsOf(list));
  const toggle = (name: string) =>
    setOpened((before) => new Set([...before].filter((each) => each !== name).concat(before.has(name) ? [] : [name])));
  return (
    <>
      <div class="heading">
        <label>
          <input
            type="checkbox"
            role="switch"
            aria-checked={isLive}
            checked={isLive}
            onChange={() => setLive(!isLive)}
          />
          Live
        </label>
        <span class="hint">{list.data && staleness(list)}</span>
      </div>
      <Pages
        list={list}
        show={(items) => (
          <Table
            columns={columns}
            rows={items.map((each) =>
              rowOf(each, opened.has(each.transaction_id), fresh.has(each.transaction_id), toggle),
            )}
            caption={`Transactions of ${nameOf(namespace)}, the latest first`}
          />
        )}
        empty={() => (
          <Empty text="No transactions.">
            <Hint>Everything that changes the catalog appears here.</Hint>
          </Empty>
        )}
        more="Show older transactions"
      />
    </>
  );
}

/** Announces what changed since the last update, and returns the ids of new transactions. */
function useFresh(items: readonly Transaction[] | undefined): ReadonlySet<string> {
  const last = useRef<readonly Transaction[]>(undefined);
  const [fresh, setFresh] = useState<ReadonlySet<string>>(new Set());
  const signature = items?.map(({ transaction_id, status }) => `${transaction_id} ${status}`).join();
  useEffect(() => {
    const known = new Map(last.current?.map((each) => [each.transaction_id, each]));
    const [newest] = last.current ?? [];
    last.current = items;
    if (items === undefined || newest === undefined) return;
    for (const { transaction_id: id, operation, status } of items)
      if ((known.get(id)?.status ?? status) !== status) announce(`${operation} is ${status.toLowerCase()} now.`);
    const isNew = (each: Transaction) =>
      !known.has(each.transaction_id) && each.created_at_millis >= newest.created_at_millis;
    const added = items.filter(isNew).map((each) => each.transaction_id);
    if (added.length > 0) announce(`${amount(added.length, "new transaction")}.`);
    setFresh(new Set(added));
  }, [signature]);
  return fresh;
}

/** Returns the row of a transaction, with its details below it while it is expanded. */
function rowOf(transaction: Transaction, isOpened: boolean, isFresh: boolean, toggle: (name: string) => void): Row {
  const { transaction_id: key, status, operation, principal, created_at_millis: at } = transaction;
  const objects = transaction.objects.map(nameOf);
  const rest = objects.length > objectsMax ? ` and ${objects.length - objectsMax} more` : "";
  return {
    key,
    class: isFresh ? "fresh" : "",
    cells: [
      <Status of={status} />,
      <button type="button" class="toggle" aria-expanded={isOpened} onClick={() => toggle(key)}>
        {operation}
      </button>,
      <Mono>{`${objects.slice(0, objectsMax).join(", ")}${rest}`}</Mono>,
      <Mono>{principal}</Mono>,
      <Time at={at} />,
    ],
    detail: isOpened && (
      <Facts
        of={monoEntries({
          Id: key,
          Opened: dateAndTime(at),
          Changed: dateAndTime(transaction.updated_at_millis),
          Objects: objects.join(", "),
          ...(transaction.request_id !== "" && { Request: transaction.request_id }),
          ...transaction.properties,
        })}
      />
    ),
  };
}
