import { entriesOf } from "./caller.js";
import { delimiterFor } from "./contracts.js";
import { parseName } from "./format.js";
import { useLayoutEffect, useRef, useState } from "./libraries/hooks.js";
import { field, html, input, textsOf } from "./view.js";

/**
 * The filter of a list: a namespace and the values of the form's fields.
 *
 * @typedef {{ namespace: import("./format.js").Identifier, filter: { table?: string, principal?: string }, text: (name: string) => string }} Chosen
 */

/**
 * Shows a form with filters, and the filtered list below it.
 *
 * @param {object} props
 * @param {import("./format.js").Identifier} props.id
 * @param {import("./caller.js").Caller} props.caller
 * @param {import("./view.js").Children} [props.more] The fields in addition to namespace, table and principal.
 * @param {(chosen: Chosen, key: number) => import("./view.js").Children} props.show Renders the list. The key is different each time.
 */
export function Filtered({ id, caller, more, show }) {
  const start = id.length > 0 ? id : (entriesOf(caller, "reader")[0] ?? []);
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  const [[chosen, turn], setChosen] = useState(/** @type {[Chosen | undefined, number]} */ ([undefined, 0]));

  /** @param {Event} [event] */
  function apply(event) {
    event?.preventDefault();
    if (form.current === null) return;
    const text = textsOf(form.current);
    const namespace = parseName(text("namespace"));
    // A table may be entered by its name in the namespace or by its whole identifier.
    const table = parseName(text("table"));
    const whole = table.length === 1 ? [...namespace, ...table] : table;
    const filter = { table: whole.join(delimiterFor(namespace)), principal: text("principal") };
    setChosen(([, before]) => [{ namespace, filter, text }, before + 1]);
  }
  useLayoutEffect(apply, []);

  return html`<form ref=${form} class="filters" onSubmit=${apply} onChange=${apply}>
      ${field("Namespace", input({ name: "namespace", placeholder: "all", defaultValue: start.join("$") }))}
      ${field("Table", input({ name: "table", placeholder: "any" }))}
      ${field("Principal", input({ name: "principal", placeholder: "any" }))}
      ${more}
      <button type="submit" class="secondary">Filter</button>
    </form>
    ${chosen && show(chosen, turn)}`;
}
