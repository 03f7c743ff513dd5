import {
  type ButtonHTMLAttributes,
  type ComponentChildren,
  type InputHTMLAttributes,
  render,
  type SelectHTMLAttributes,
} from "preact";
import { useRef, useState } from "preact/hooks";
import { ApiError } from "./api.ts";
import { ago, dateAndTime } from "./format.ts";

export type Children = ComponentChildren;

const shapes = {
  folder:
    "M3 6.5A1.5 1.5 0 0 1 4.5 5h4l2 2.2h5A1.5 1.5 0 0 1 17 8.7v6.8a1.5 1.5 0 0 1-1.5 1.5h-11A1.5 1.5 0 0 1 3 15.5z",
  table: "M3.5 4.5h13v11h-13zM3.5 8.2h13M3.5 11.8h13M8 8.2v7.3",
  column: "M3.5 4.5h13v11h-13zM8 4.5v11M12 4.5v11",
  chevron: "m8 5 5 5-5 5",
  copy: "M7.5 7.5h8v8h-8zM12.5 7.5v-3h-8v8h3",
  sun: "M10 6.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7zM10 2v1.8M10 16.2V18M2 10h1.8M16.2 10H18M4.3 4.3l1.3 1.3M14.4 14.4l1.3 1.3M15.7 4.3l-1.3 1.3M5.6 14.4l-1.3 1.3",
  moon: "M16.5 12A7 7 0 0 1 8 3.5 7 7 0 1 0 16.5 12z",
  lock: "M5.5 9h9v7h-9zM7.5 9V6.8a2.5 2.5 0 0 1 5 0V9",
};

/** A decorative icon, which screen readers skip. */
export const Icon = ({ name }: { readonly name: keyof typeof shapes }) => (
  <svg viewBox="0 0 20 20" class="icon" aria-hidden="true">
    <path d={shapes[name]} />
  </svg>
);

/** Announces an event to screen readers. */
export function announce(text: string): void {
  const region = document.getElementById("announcements");
  if (region !== null) region.textContent = text;
}

/** A button that copies a text. `what` is the kind of the text, such as "location". */
export function CopyButton({ text, what }: { readonly text: string; readonly what: string }) {
  const copy = ({ currentTarget: button }: { readonly currentTarget: HTMLElement }) =>
    navigator.clipboard.writeText(text).then(
      () => {
        button.classList.add("done");
        announce(`The ${what} was copied.`);
      },
      () => announce(`The browser did not allow to copy the ${what}.`),
    );
  const label = `Copy the ${what}`;
  return (
    <button type="button" class="quiet small" aria-label={label} title={label} onClick={copy}>
      <Icon name="copy" />
    </button>
  );
}

/** Converts the name of a field, such as `rows_committed`, to words. */
export function words(name: string): string {
  const text = name.replaceAll("_", " ");
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

/** Ends a message of the catalog with a period. Its first word keeps its case, because it may be a name. */
export const sentence = (text: string) => (/[.?!]$/.test(text) ? text : `${text}.`);

export const messageOf = (error: unknown) =>
  error instanceof ApiError ? sentence(error.message) : `The console failed: ${error}`;

/** An error with a button to retry. */
export const Problem = ({ error, retry }: { readonly error: unknown; readonly retry: () => void }) => (
  <div class="box problem" role="alert">
    <p>{messageOf(error)}</p>
    <button type="button" class="outline" onClick={() => retry()}>
      Try again
    </button>
  </div>
);

/** The reason of a failed action; empty without a failure. */
export const Failure = ({ text }: { readonly text: string }) => (
  <p class="failure" role="alert">
    {text}
  </p>
);

export const Loading = () => (
  <p class="loading" role="status">
    Loading…
  </p>
);

/** The result of a query, the progress of the load, or its error. */
export function Loaded<Result>({
  query: { data, error, failureReason, refetch },
  children,
  instead,
}: {
  readonly query: {
    readonly data: Result | undefined;
    readonly error: unknown;
    readonly failureReason: unknown;
    readonly refetch: () => unknown;
  };
  readonly children: (result: Result) => Children;
  /** Renders an expected error. */
  readonly instead?: (error: unknown) => Children | undefined;
}) {
  if (data !== undefined) return <>{children(data)}</>;
  const problem = error ?? failureReason;
  if (problem == null) return <Loading />;
  return <>{instead?.(problem) ?? <Problem error={problem} retry={refetch} />}</>;
}

/** The number of characters that fit into a line of a narrow cell. */
const shortMax = 24;

interface Content {
  readonly children?: Children;
}

/** The statement that nothing exists, with a hint as its children. */
export const Empty = ({ text, children }: Content & { readonly text: Children }) => (
  <div class="box empty">
    <p>{text}</p>
    {children}
  </div>
);
/** The reason why something cannot be shown although no error occurred. */
export const Note = ({ children }: Content) => <div class="box note">{children}</div>;
/** The reason why the catalog does not support an operation; undefined for any other error. */
export const unsupported = (error: unknown) =>
  error instanceof ApiError && error.status === 406 ? <Note>{sentence(error.message)}</Note> : undefined;
export const Hint = ({ children }: Content) => <p class="hint">{children}</p>;
/** A name or a value. A short one is never broken into lines. */
export const Mono = ({ children }: Content) => (
  <span class={typeof children === "string" && children.length <= shortMax ? "mono short" : "mono"}>{children}</span>
);
export const Status = ({ of }: { readonly of: string }) => <span class={`status ${of.toLowerCase()}`}>{of}</span>;

/** The age of a time, which is in milliseconds since the epoch. */
export const Time = ({ at }: { readonly at: number }) => (
  <time dateTime={new Date(at).toISOString()} title={dateAndTime(at)}>
    {ago(at)}
  </time>
);

/** A list of names and values. Unknown values are skipped. */
export const Facts = ({ of }: { readonly of: readonly (readonly [string, Children])[] }) => (
  <dl>
    {of
      .filter(([, value]) => value !== undefined && value !== false && value !== "")
      .map(([name, value]) => (
        <>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </>
      ))}
  </dl>
);

export const monoEntries = (entries: Readonly<Record<string, string>>) =>
  Object.entries(entries).map(([name, value]) => [name, <Mono key={name}>{value}</Mono>] as const);

export function Section({ title, children }: Content & { readonly title: string }) {
  const id = `section-${title.toLowerCase().replaceAll(/[^a-z]+/g, "-")}`;
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {children}
    </section>
  );
}

export interface Row {
  readonly key: string | number;
  readonly cells: readonly Children[];
  readonly class?: string;
  /** Shown below the row over its whole width. */
  readonly detail?: Children;
}

/** A table. On a narrow screen, each row is a card that contains the names of the columns. */
export const Table = ({
  columns,
  rows,
  caption,
  ...attributes
}: {
  /** The headings; empty for a column of buttons. */
  readonly columns: readonly string[];
  readonly rows: readonly Row[];
  readonly caption?: string;
  readonly class?: string;
}) => (
  <table {...attributes}>
    {caption && <caption class="visually-hidden">{caption}</caption>}
    <thead>
      <tr>
        {columns.map((column) => (
          <th scope="col" key={column}>
            {column || <span class="visually-hidden">Actions</span>}
          </th>
        ))}
      </tr>
    </thead>
    <tbody>
      {rows.map(({ key, cells, class: name, detail }) => (
        <>
          <tr key={key} class={name}>
            {cells.map((content, index) => (
              <td key={columns[index]} data-label={columns[index]} class={columns[index] === "" ? "action" : ""}>
                {content}
              </td>
            ))}
          </tr>
          {detail && (
            <tr key={`${key} in detail`} class="detail">
              <td colSpan={columns.length}>{detail}</td>
            </tr>
          )}
        </>
      ))}
    </tbody>
  </table>
);

/** A small button with a border, for an action next to a list or a value. */
export const SmallButton = (attributes: Omit<ButtonHTMLAttributes<HTMLButtonElement>, "type" | "class">) => (
  <button type="button" class="outline small" {...attributes} />
);

/** A control with its label. */
export const Field = ({ label, children }: Content & { readonly label: string }) => (
  // biome-ignore lint/a11y/noLabelWithoutControl: the control is among the children.
  <label>
    {label}
    {children}
  </label>
);

/** A text field. */
export const Input = (attributes: InputHTMLAttributes<HTMLInputElement>) => (
  <input type="text" autocomplete="off" spellcheck={false} {...attributes} />
);

/** A choice between options: each is its own text, or a value with another text. */
export const Select = ({
  options,
  ...attributes
}: SelectHTMLAttributes<HTMLSelectElement> & {
  readonly options: readonly (string | readonly [value: string, text: string])[];
}) => (
  <select {...attributes}>
    {options.map((option) => {
      const [value, text] = typeof option === "string" ? [option, option] : option;
      return (
        <option key={value} value={value}>
          {text}
        </option>
      );
    })}
  </select>
);

/** Returns the trimmed values of a form by the names of its fields. */
export function textsOf(form: HTMLFormElement): (name: string) => string {
  const data = new FormData(form);
  return (name) => String(data.get(name) ?? "").trim();
}

/**
 * Shows a dialog until it is closed.
 *
 * @param actions The buttons, whose values are the possible results.
 * @returns The value of the button; empty if the dialog was closed without one.
 */
export function dialog(title: string, text: Children, actions: Children): Promise<string> {
  const host = document.body.appendChild(document.createElement("div"));
  return new Promise((resolve) => {
    const close = ({ currentTarget }: { readonly currentTarget: HTMLDialogElement }) => {
      render(null, host);
      host.remove();
      resolve(currentTarget.returnValue);
    };
    render(
      <dialog aria-labelledby="dialog-title" onClose={close} ref={(shown) => shown?.showModal()}>
        <article>
          <h2 id="dialog-title">{title}</h2>
          {text}
          <footer>
            <form method="dialog">{actions}</form>
          </footer>
        </article>
      </dialog>,
      host,
    );
  });
}

/** Closes open dialogs without a result. They belong to a page and a session, which may end meanwhile. */
export function closeDialogs(): void {
  for (const shown of document.querySelectorAll("dialog")) shown.close();
}

/** Asks for confirmation before an action that cannot be undone. */
export async function confirm({
  title,
  text,
  action,
  keep = "Cancel",
}: {
  readonly title: string;
  readonly text: Children;
  readonly action: string;
  readonly keep?: string;
}): Promise<boolean> {
  const buttons = (
    <>
      <button type="submit" value="no" class="secondary outline" autofocus>
        {keep}
      </button>
      <button type="submit" value="yes" class="danger">
        {action}
      </button>
    </>
  );
  return (await dialog(title, <p>{text}</p>, buttons)) === "yes";
}

/**
 * Asks for the values of a form and saves them. If that fails, the dialog stays open with the typed text and the error.
 *
 * @param save Receives a function that returns the trimmed value of a field by its name.
 */
export async function readForm(
  title: string,
  fields: Children,
  action: string,
  save: (text: (name: string) => string) => Promise<unknown>,
): Promise<void> {
  await dialog(
    title,
    <SavedForm fields={fields} save={save} />,
    <>
      <button type="submit" class="secondary outline">
        Cancel
      </button>
      <button type="submit" form={formId}>
        {action}
      </button>
    </>,
  );
}

const formId = "dialog-form";

function SavedForm({
  fields,
  save,
}: {
  readonly fields: Children;
  readonly save: (text: (name: string) => string) => Promise<unknown>;
}) {
  const [failed, setFailed] = useState("");
  const isBusy = useRef(false);
  async function submit(event: Event) {
    event.preventDefault();
    const form = event.currentTarget;
    if (!(form instanceof HTMLFormElement) || isBusy.current) return;
    isBusy.current = true;
    try {
      await save(textsOf(form));
      form.closest("dialog")?.close();
    } catch (error) {
      setFailed(messageOf(error));
    }
    isBusy.current = false;
  }
  return (
    <form id={formId} onSubmit={submit}>
      {fields}
      <Failure text={failed} />
    </form>
  );
}
