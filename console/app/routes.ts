import type { Identifier } from "@tiltyard/protocol";
import type { Caller } from "./caller.ts";

/** The current location in the console. It is the fragment of the URL, which browsers do not send to servers. */
export interface Route {
  readonly page: string;
  readonly id: Identifier;
  readonly tab: string | undefined;
  /** The state of the tab, such as the version of the shown rows. */
  readonly state: Readonly<Record<string, string>>;
}

/** The props of a page and of its parts. */
export interface PageProps {
  readonly id: Identifier;
  readonly tab: string | undefined;
  readonly state: Readonly<Record<string, string>>;
  readonly caller: Caller;
}

export function currentRoute(): Route {
  const [path = "", search = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [page = "", ...parts] = path.split("/").filter((part) => part !== "");
  const { show: tab, ...state } = Object.fromEntries(new URLSearchParams(search));
  return { page: page || "tables", id: parts.map(decode), tab, state };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function linkTo(
  page: string,
  id: Identifier = [],
  tab?: string,
  state: Readonly<Record<string, string>> = {},
): string {
  const path = ["#", page, ...id.map(encodeURIComponent)].join("/");
  return tab === undefined ? path : `${path}?${new URLSearchParams({ show: tab, ...state })}`;
}

/** Navigates like a link. */
export function goTo(page: string, id: Identifier = []): void {
  location.hash = linkTo(page, id);
}
