import { ApiError, call } from "./calls.js";
import { delimiterFor, transactionStatuses } from "./contracts.js";
import { Filtered } from "./filters.js";
import { dateAndTime, nameOf } from "./format.js";
import { isOpen, openStatuses } from "./job.js";
import { useState } from "./libraries/hooks.js";
import { Pages, usePages, usePoll, useTitle } from "./loading.js";
import { announce, empty, facts, field, hint, html, mono, monoEntries, select, statusOf, table, time } from "./view.js";

/**
 * @typedef {import("./format.js").Identifier} Identifier
 * @typedef {import("./calls.js").AnswerTo<"listTransactions">["transactions"][number]} Transaction
 * @typedef {{ table?: string, principal?: string, status?: Transaction["status"][], since_millis?: number | undefined }} Filter
 */

const limit = 50;
const pollEveryMs = 3_000;
const objectsMax = 2;
const columns = ["Status", "Operation", "Objects", "Principal", "Opened"];

const statusField = field(
  "Status",
  select("status", [
    ["", "any"],
    [openStatuses.join(","), "not over yet"],
    ...transactionStatuses.map((each) => /** @type {const} */ ([each, each])),
  ]),
);
const periodField = field(
  "Opened in",
  select("since", [
    ["", "any time"],
    ["900000", "the last 15 minutes"],
    ["86400000", "the last day"],
    ["604800000", "the last week"],
  ]),
);

/** The page of the transactions of a namespace, updated live. @param {import("./main.js").PageProps} props */
export function TransactionsPage({ id, caller }) {
  useTitle("Transactions");
  /** @param {import("./filters.js").Chosen} chosen @param {number} key */
  function show({ namespace, filter, text }, key) {
    const status = transactionStatuses.filter((each) => text("status").split(",").includes(each));
    const since_millis = text("since") === "" ? undefined : Date.now() - Number(text("since"));
    return html`<${TransactionList} key=${key} namespace=${namespace} filter=${{ ...filter, status, since_millis }} />`;
  }
  return html`<h1 tabindex="-1">Transactions</h1>
    <${Filtered} id=${id} caller=${caller} more=${[statusField, periodField]} show=${show} />`;
}

/**
 * Lists the transactions of a namespace, the latest first. While it is live, new transactions appear, and those without
 * a final status are updated.
 *
 * @param {{ namespace: Identifier, filter: Filter }} props
 */
export function TransactionList({ namespace, filter }) {
  const [isLive, setLive] = useState(true);
  const [fresh, setFresh] = useState(/** @type {ReadonlySet<string>} */ (new Set()));
  const [opened, setOpened] = useState(/** @type {ReadonlySet<string>} */ (new Set()));

  const request = { id: namespace, ...filter, limit };
  const pages = usePages(
    (page, signal) => call("listTransactions", { ...request, ...page }, signal),
    ({ transactions }) => transactions,
  );

  /** @param {AbortSignal} signal */
  async function refresh(signal) {
    const known = new Map((pages.items ?? []).map((each) => [each.transaction_id, each]));
    const { transactions: latest } = await call("listTransactions", request, signal);
    const changed = new Map(latest.map((each) => [each.transaction_id, each]));
    for (const [name, before] of known) {
      if (changed.has(name) || !isOpen(before)) continue;
      const described = await describe(name.split(delimiterFor(namespace)), signal);
      if (described !== undefined)
        changed.set(name, { ...before, status: described.status, properties: described.properties });
    }
    for (const { transaction_id: name, operation, status } of changed.values())
      if (known.has(name) && known.get(name)?.status !== status)
        announce(`${operation} is ${status.toLowerCase()} now.`);
    const added = latest.filter((each) => !known.has(each.transaction_id));
    if (added.length > 0) announce(`${added.length} new ${added.length === 1 ? "transaction" : "transactions"}.`);
    setFresh(new Set(added.map((each) => each.transaction_id)));
    pages.update((items) => [...added, ...items.map((each) => changed.get(each.transaction_id) ?? each)]);
    return true;
  }
  const wrong = usePoll({ everyMs: pollEveryMs, isOn: isLive && pages.items !== undefined, work: refresh });

  /** @param {string} name */
  const toggle = (name) =>
    setOpened((before) => new Set([...before].filter((each) => each !== name).concat(before.has(name) ? [] : [name])));
  const show = (/** @type {readonly Transaction[]} */ items) =>
    table(
      columns,
      items.map((each) => rowOf(each, opened.has(each.transaction_id), fresh.has(each.transaction_id), toggle)),
      { caption: `Transactions of ${nameOf(namespace)}, the latest first` },
    );
  const none = () => empty(html`<p>No transactions.</p>${hint("Everything that changes the catalog appears here.")}`);
  return html`
    <div class="heading">
      <label><input type="checkbox" role="switch" checked=${isLive} onChange=${() => setLive(!isLive)} />Live</label>
      <span class="hint">${wrong}</span>
    </div>
    <${Pages} pages=${pages} show=${show} empty=${none} more="Show older transactions" />`;
}

/** @param {Identifier} id @param {AbortSignal} signal */
async function describe(id, signal) {
  try {
    return await call("describeTransaction", { id }, signal);
  } catch (error) {
    // A name whose parts contain the delimiter cannot be split unambiguously.
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

/** Renders a transaction, with its details below it while it is expanded. @param {Transaction} transaction @param {boolean} isOpened @param {boolean} isFresh @param {(name: string) => void} toggle */
function rowOf(transaction, isOpened, isFresh, toggle) {
  const { transaction_id: key, status, operation, principal, created_at_millis: at } = transaction;
  const objects = transaction.objects.map(nameOf);
  const rest = objects.length > objectsMax ? ` and ${objects.length - objectsMax} more` : "";
  return {
    key,
    class: isFresh ? "fresh" : undefined,
    cells: [
      statusOf(status),
      html`<button type="button" class="toggle" aria-expanded=${isOpened} onClick=${() => toggle(key)}>${operation}</button>`,
      mono(`${objects.slice(0, objectsMax).join(", ")}${rest}`),
      mono(principal),
      time(at),
    ],
    detail:
      isOpened &&
      facts(
        monoEntries({
          Id: key,
          Opened: dateAndTime(at),
          Changed: dateAndTime(transaction.updated_at_millis),
          Objects: objects.join(", "),
          Request: transaction.request_id,
          ...transaction.properties,
        }).filter(([name]) => name !== "Request" || transaction.request_id !== ""),
      ),
  };
}
