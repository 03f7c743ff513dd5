import { entriesOf } from "./caller.js";
import { delimiterFor } from "./calls.js";
import { parseName } from "./format.js";
import { useLayoutEffect, useRef, useState } from "./libraries/hooks.js";
import { field, html, input, textsOf } from "./view.js";

/**
 * What is listed: a namespace, and what the fields of the filter have.
 *
 * @typedef {{ namespace: import("./format.js").Identifier, filter: { table?: string, principal?: string }, text: (name: string) => string }} Chosen
 */

/**
 * A form that says which of many things are shown, and what is shown for it.
 *
 * @param {object} props
 * @param {import("./format.js").Identifier} props.id
 * @param {import("./caller.js").Caller} props.caller
 * @param {import("./view.js").Children} [props.more] Fields beside namespace, table and principal.
 * @param {(chosen: Chosen, key: number) => import("./view.js").Children} props.show The key is another one each time.
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
    // A table may be written as it is called in the namespace, or by its whole identifier.
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
