import { delimiterFor } from "./api.js";
import { entriesOf } from "./caller.js";
import { h } from "./dom.js";
import { parseName } from "./format.js";

/** @param {string} label @param {HTMLElement} control */
export function field(label, control) {
  return h("label", { class: "field" }, h("span", {}, label), control);
}

/**
 * A form that says which of many things are shown, and what is shown for it.
 *
 * @param {import("./main.js").PageContext} context
 * @param {readonly HTMLElement[]} more Fields beside namespace, table and principal.
 * @param {(chosen: { namespace: import("./format.js").Identifier, filter: { table?: string, principal: string }, text: (name: string) => string, signal: AbortSignal }) => Node} show
 */
export function filtered({ id, caller, signal }, more, show) {
  const start = id.length > 0 ? id : (entriesOf(caller, "reader")[0] ?? []);
  const result = h("div");
  const input = (/** @type {string} */ name, /** @type {string} */ placeholder, value = "") =>
    h("input", { name, value, placeholder, autocomplete: "off", spellcheck: "false" });
  const form = h(
    "form",
    { class: "filters", onsubmit: apply, onchange: apply },
    field("Namespace", input("namespace", "all", start.join("$"))),
    field("Table", input("table", "any")),
    field("Principal", input("principal", "any")),
    more,
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
    const namespace = parseName(text("namespace"));
    // A table may be written as it is called in the namespace, or by its whole identifier.
    const table = parseName(text("table"));
    const whole = table.length === 1 ? [...namespace, ...table] : table;
    const filter = {
      ...(text("table") !== "" && { table: whole.join(delimiterFor(namespace)) }),
      principal: text("principal"),
    };
    result.replaceChildren(show({ namespace, filter, text, signal: AbortSignal.any([signal, leaving.signal]) }));
  }

  apply();
  return [form, result];
}
