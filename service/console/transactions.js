import { ApiError, delimiterFor, describeTransaction, listTransactions } from "./api.js";
import { announce, h } from "./dom.js";
import { field, filtered } from "./filters.js";
import { ago, dateAndTime, nameOf } from "./format.js";
import { empty, grid, paged } from "./list.js";
import { poll } from "./poll.js";

/**
 * @typedef {import("./api.js").Answer<import("./api.js").ManagementContracts["listTransactions"]>["transactions"][number]} Transaction
 * @typedef {{ table?: string, principal?: string, status?: string, since_millis?: number | undefined }} Filter
 */

const pageSize = 50;
const pollEveryMs = 3_000;
const statuses = ["Queued", "Running", "Succeeded", "Failed", "Canceled"];
const openStatuses = ["Queued", "Running"];
const periods = /** @type {const} */ ([
  ["", "any time"],
  ["900000", "the last 15 minutes"],
  ["86400000", "the last day"],
  ["604800000", "the last week"],
]);

/** The transactions of a namespace, as they happen. @param {import("./main.js").PageContext} context */
export function transactionsPage(context) {
  const status = h(
    "select",
    { name: "status" },
    h("option", { value: "" }, "any"),
    h("option", { value: openStatuses.join(",") }, "not over yet"),
    statuses.map((each) => h("option", { value: each }, each)),
  );
  const period = h(
    "select",
    { name: "since" },
    periods.map(([value, text]) => h("option", { value }, text)),
  );
  const content = h(
    "div",
    { class: "page" },
    h("div", { class: "heading" }, h("h1", { tabindex: "-1" }, "Transactions")),
    filtered(context, [field("Status", status), field("Opened in", period)], ({ namespace, filter, text, signal }) => {
      const since = text("since");
      const more = { status: text("status"), ...(since !== "" && { since_millis: Date.now() - Number(since) }) };
      return transactionList({ namespace, filter: { ...filter, ...more }, signal });
    }),
  );
  return { title: "Transactions", content };
}

/**
 * The transactions of a namespace, latest first. While it is live, new ones appear and those that
 * are not over yet change.
 *
 * @param {{ namespace: import("./format.js").Identifier, filter: Filter, signal: AbortSignal }} options
 */
export function transactionList({ namespace, filter, signal }) {
  /** @type {Map<string, ReturnType<typeof transactionRow>>} */
  const rows = new Map();
  const body = h("tbody");
  const table = grid(["Status", "Operation", "Objects", "Principal", "Opened"], body, {
    caption: `Transactions of ${nameOf(namespace)}, the latest first`,
    class: "transactions",
  });
  const state = h("span", { class: "hint" });
  const live = h("input", {
    type: "checkbox",
    checked: true,
    role: "switch",
    onchange: () => (live.checked ? now() : stop()),
  });
  const list = paged({
    signal,
    load: async (page_token) => {
      const { transactions, page_token: next } = await listTransactions(namespace, {
        ...filter,
        page_token,
        limit: pageSize,
        signal,
      });
      return { items: transactions, next };
    },
    frame: table,
    into: body,
    row: (transaction) => rowOf(transaction).elements,
    empty: () =>
      empty(
        h("p", {}, "No transactions."),
        h("p", { class: "hint" }, "Everything that changes the catalog appears here."),
      ),
    more: "Show older transactions",
  });

  /** @param {Transaction} transaction */
  function rowOf(transaction) {
    const made = transactionRow(transaction);
    rows.set(transaction.transaction_id, made);
    return made;
  }

  async function refresh() {
    const { transactions: latest } = await listTransactions(namespace, { ...filter, limit: pageSize, signal });
    const fresh = latest.filter((each) => !rows.has(each.transaction_id));
    for (const { age } of rows.values()) age();
    for (const transaction of latest) rows.get(transaction.transaction_id)?.update(transaction);
    const seen = new Set(latest.map((each) => each.transaction_id));
    for (const { current, update } of [...rows.values()]) {
      const { transaction_id: name, status } = current();
      if (seen.has(name) || !openStatuses.includes(status)) continue;
      const described = await describeTransaction(name.split(delimiterFor(namespace)), signal).catch(ignoreMissing);
      if (described !== undefined) update({ ...current(), status: described.status, properties: described.properties });
    }
    if (fresh.length === 0) return;
    if (body.parentElement?.isConnected !== true) list.replaceChildren(table);
    for (const transaction of fresh.toReversed()) {
      const { elements } = rowOf(transaction);
      elements[0]?.classList.add("fresh");
      body.prepend(...elements);
    }
    announce(`${fresh.length} new ${fresh.length === 1 ? "transaction" : "transactions"}.`);
  }

  const { now, stop } = poll({
    signal,
    everyMs: pollEveryMs,
    work: async () => {
      if (list.querySelector(".loading, .problem") === null) await refresh();
      return true;
    },
    tell: (text) => {
      state.textContent = text;
    },
  });

  return h(
    "div",
    {},
    h("div", { class: "toolbar" }, h("label", { class: "switch" }, live, h("span", {}, "Live")), state),
    list,
  );
}

/** A name whose parts have the delimiter in them cannot be told apart again. @param {unknown} error */
function ignoreMissing(error) {
  if (error instanceof ApiError && error.status === 404) return undefined;
  throw error;
}

/** A transaction as a row, with all that is known of it in a second row that can be opened. @param {Transaction} transaction */
function transactionRow(transaction) {
  let now = transaction;
  const status = h("span");
  const facts = h("dl", { class: "facts" });
  const detail = h("tr", { class: "detail", hidden: true }, h("td", { colspan: "5" }, facts));
  const toggle = h(
    "button",
    { type: "button", class: "toggle", "aria-expanded": "false", onclick: open },
    transaction.operation,
  );
  const objects = transaction.objects.map(nameOf);
  const at = transaction.created_at_millis;
  const opened = h("time", { datetime: new Date(at).toISOString(), title: dateAndTime(at) });
  const row = h(
    "tr",
    {},
    h("td", { "data-label": "Status" }, status),
    h("td", { "data-label": "Operation" }, toggle),
    h(
      "td",
      { "data-label": "Objects", class: "mono objects" },
      objects.slice(0, 2).join(", "),
      objects.length > 2 && ` and ${objects.length - 2} more`,
    ),
    h("td", { "data-label": "Principal", class: "mono" }, transaction.principal),
    h("td", { "data-label": "Opened" }, opened),
  );

  function open() {
    detail.hidden = !detail.hidden;
    toggle.setAttribute("aria-expanded", String(!detail.hidden));
  }

  /** @param {Transaction} next */
  function update(next) {
    const before = now.status;
    now = next;
    status.className = `status ${next.status.toLowerCase()}`;
    status.textContent = next.status;
    facts.replaceChildren(
      ...[
        ["Id", next.transaction_id],
        ["Opened", dateAndTime(next.created_at_millis)],
        ["Changed", dateAndTime(next.updated_at_millis)],
        ["Objects", objects.join(", ")],
        ["Request", next.request_id],
        ...Object.entries(next.properties),
      ]
        .filter(([, value]) => value !== "")
        .flatMap(([name, value]) => [h("dt", {}, name), h("dd", { class: "mono" }, value)]),
    );
    if (before !== next.status) announce(`${next.operation} is ${next.status.toLowerCase()} now.`);
  }
  update(transaction);
  age();

  /** Says how long ago it was. */
  function age() {
    opened.textContent = ago(at);
  }
  return {
    elements: [row, detail],
    update,
    current: () => now,
    age,
  };
}
