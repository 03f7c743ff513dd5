import { delimiterFor, type Identifier } from "@tiltyard/protocol";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Caller, entriesOf } from "./caller.ts";
import { parseName } from "./format.ts";
import { type Children, Field, Input, textsOf } from "./view.tsx";

/** The filter of a list: a namespace and the values of the form's fields. */
export interface Chosen {
  readonly namespace: Identifier;
  readonly filter: { readonly table?: string; readonly principal?: string };
  readonly text: (name: string) => string;
}

/** A form with filters, and the filtered list below it. */
export function Filtered({
  id,
  caller,
  more,
  show,
}: {
  readonly id: Identifier;
  readonly caller: Caller;
  /** The fields in addition to namespace, table and principal. */
  readonly more?: Children;
  readonly show: (chosen: Chosen) => Children;
}) {
  const start = id.length > 0 ? id : (entriesOf(caller, "reader")[0] ?? []);
  const form = useRef<HTMLFormElement>(null);
  const [chosen, setChosen] = useState<Chosen>();

  function apply(event?: Event) {
    event?.preventDefault();
    if (form.current === null) return;
    const text = textsOf(form.current);
    const namespace = parseName(text("namespace"));
    // A table may be entered by its name in the namespace or by its whole identifier.
    const table = parseName(text("table"));
    const whole = table.length === 1 ? [...namespace, ...table] : table;
    setChosen({
      namespace,
      filter: { table: whole.join(delimiterFor(namespace)), principal: text("principal") },
      text,
    });
  }
  useLayoutEffect(apply, []);

  return (
    <>
      <form ref={form} class="filters" onSubmit={apply} onChange={apply}>
        <Field label="Namespace">
          <Input name="namespace" placeholder="all" defaultValue={start.join("$")} />
        </Field>
        <Field label="Table">
          <Input name="table" placeholder="any" />
        </Field>
        <Field label="Principal">
          <Input name="principal" placeholder="any" />
        </Field>
        {more}
        <button type="submit" class="secondary">
          Filter
        </button>
      </form>
      {chosen && show(chosen)}
    </>
  );
}
