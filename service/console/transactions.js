import { ApiError, delimiterFor, describeTransaction, listTransactions } from "./api.js";
import { entriesOf } from "./caller.js";
import { announce, h } from "./dom.js";
import { ago, dateAndTime, nameOf, parseName } from "./format.js";
import { empty, grid, paged } from "./list.js";

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

/** Who does what, as it happens. @param {import("./main.js").PageContext} context */
export function transactionsPage({ id, caller, signal }) {
  const entries = entriesOf(caller, "reader");
  const start = id.length > 0 ? id : (entries[0] ?? []);
  const result = h("div");
  const namespace = field(
    "Namespace",
    h("input", {
      name: "namespace",
      value: start.join("$"),
      placeholder: "all",
      autocomplete: "off",
      spellcheck: "false",
    }),
  );
  const form = h(
    "form",
    { class: "filters", onsubmit: apply, onchange: apply },
    namespace,
    field("Table", h("input", { name: "table", placeholder: "any", autocomplete: "off", spellcheck: "false" })),
    field(
      "Principal",
      h("input", { name: "principal", placeholder: "anyone", autocomplete: "off", spellcheck: "false" }),
    ),
    field(
      "Status",
      h(
        "select",
        { name: "status" },
        h("option", { value: "" }, "any"),
        h("option", { value: openStatuses.join(",") }, "not over yet"),
        statuses.map((status) => h("option", { value: status }, status)),
      ),
    ),
    field(
      "Opened in",
      h(
        "select",
        { name: "since" },
        periods.map(([value, text]) => h("option", { value }, text)),
      ),
    ),
    h("button", { type: "submit" }, "Filter"),
  );
  let leaving = new AbortController();

  /** @param {Event} [event] */
  function apply(event) {
    event?.preventDefault();
    leaving.abort();
    leaving = new AbortController();
    const data = new FormData(form);
    const text = (/** @type {string} */ name) => String(data.get(name) ?? "").trim();
    const within = parseName(text("namespace"));
    const since = text("since");
    // A table may be written as it is called in the namespace, or by its whole identifier.
    const table = parseName(text("table"));
    const whole = table.length === 1 ? [...within, ...table] : table;
    result.replaceChildren(
      transactionList({
        namespace: within,
        filter: {
          ...(text("table") !== "" && { table: whole.join(delimiterFor(within)) }),
          principal: text("principal"),
          status: text("status"),
          ...(since !== "" && { since_millis: Date.now() - Number(since) }),
        },
        signal: AbortSignal.any([signal, leaving.signal]),
      }),
    );
  }

  apply();
  const content = h(
    "div",
    { class: "page" },
    h("div", { class: "heading" }, h("h1", { tabindex: "-1" }, "Transactions")),
    form,
    result,
  );
  return { title: "Transactions", content };
}

/** @param {string} label @param {HTMLElement} control */
export function field(label, control) {
  return h("label", { class: "field" }, h("span", {}, label), control);
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
  const live = h("input", { type: "checkbox", checked: true, role: "switch", onchange: () => tick() });
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

  /** @type {number | undefined} */
  let timer;
  let isBusy = false;
  async function tick() {
    clearTimeout(timer);
    if (signal.aborted || isBusy || !live.checked) return;
    if (!document.hidden && list.querySelector(".loading, .problem") === null) {
      isBusy = true;
      try {
        await refresh();
        state.textContent = "";
      } catch (error) {
        if (!signal.aborted) state.textContent = `Not up to date: ${/** @type {Error} */ (error).message}`;
      }
      isBusy = false;
    }
    if (!signal.aborted) timer = setTimeout(tick, pollEveryMs);
  }
  timer = setTimeout(tick, pollEveryMs);
  signal.addEventListener("abort", () => clearTimeout(timer));

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
