import { type Identifier, isWithin } from "@tiltyard/protocol";
import { useState } from "preact/hooks";
import { type Caller, entriesOf } from "./caller.ts";
import { linkTo } from "./routes.ts";
import { type Children, Icon } from "./view.tsx";

export const mark = <img src="console/icon.svg" alt="" width="26" height="26" />;

/** The frame of every page. */
export function Shell({
  caller,
  page,
  onSignOut,
  children,
}: {
  readonly caller: Caller;
  /** The name of the current page. */
  readonly page: string;
  readonly onSignOut: () => void;
  readonly children: Children;
}) {
  const pages = [
    ["tables", "Tables"],
    ["search", "Search"],
    ["jobs", "Jobs"],
    ["transactions", "Transactions"],
    ...(entriesOf(caller, "admin").length > 0 ? [["access", "Access"] as const] : []),
  ] as const;
  return (
    <>
      {/* biome-ignore lint/a11y/useValidAnchor: this is a link to a place on this page. */}
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <header>
        <div class="container">
          <a class="brand" href={linkTo("tables")} aria-label="Tiltyard, all tables">
            {mark}
            <span>Tiltyard</span>
          </a>
          <Links label="Pages" class="pages" parts={pages} shown={page} href={(key) => linkTo(key)} />
          <span class="principal" title={caller.principal}>
            {caller.principal}
          </span>
          <ThemeButton />
          <button type="button" class="quiet" onClick={onSignOut}>
            Sign out
          </button>
        </div>
      </header>
      <main id="main" class="container" tabIndex={-1}>
        {children}
      </main>
    </>
  );
}

function skip(event: Event): void {
  // The default action would change the fragment of the URL, which identifies the page.
  event.preventDefault();
  document.getElementById("main")?.focus();
}

/** Links to parts of a page, with a mark on the current one. */
export const Links = ({
  label,
  class: name,
  parts,
  shown,
  href,
}: {
  readonly label: string;
  readonly class: string;
  /** The key and the text of each part. */
  readonly parts: readonly (readonly [key: string, text: string])[];
  /** The key of the current part. */
  readonly shown: string;
  readonly href: (key: string) => string;
}) => (
  <nav class={name} aria-label={label}>
    {parts.map(([key, text]) => (
      <a key={key} href={href(key)} aria-current={key === shown ? "page" : undefined}>
        {text}
      </a>
    ))}
  </nav>
);

/** Switches between light and dark colours. Before the first use, the system's preference applies. */
function ThemeButton() {
  const [chosen, setChosen] = useState(document.documentElement.dataset.theme);
  const isDark = (chosen ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  function toggle() {
    const theme = isDark ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    setChosen(theme);
    try {
      localStorage.setItem("tiltyard.theme", theme);
    } catch {
      // Without storage, the choice is lost when the page is reloaded.
    }
  }
  const label = isDark ? "Use light colours" : "Use dark colours";
  return (
    <button type="button" class="quiet small" aria-label={label} title={label} onClick={toggle}>
      <Icon name={isDark ? "sun" : "moon"} />
    </button>
  );
}

/** A path of links. The last step is the page itself. */
export const Breadcrumb = ({ steps }: { readonly steps: readonly (readonly [text: Children, href?: string])[] }) => (
  <nav aria-label="breadcrumb">
    <ul>
      {steps.map(([text, href], index) => (
        <li key={href}>
          {index === steps.length - 1 ? (
            <span aria-current="page">{text}</span>
          ) : href === undefined ? (
            text
          ) : (
            <a href={href}>{text}</a>
          )}
        </li>
      ))}
    </ul>
  </nav>
);

/** The path to an object. */
export function BreadcrumbOf({ id, caller }: { readonly id: Identifier; readonly caller: Caller }) {
  const entries = entriesOf(caller, "reader");
  const isReadable = (length: number) => entries.some((entry) => entry.length <= length && isWithin(id, entry));
  const steps = id.map((part, index) => {
    const here = id.slice(0, index + 1);
    return isReadable(here.length) ? ([part, linkTo("tables", here)] as const) : ([part] as const);
  });
  return <Breadcrumb steps={[["Catalog", linkTo("tables")], ...steps]} />;
}
