import { AccessPage } from "./access.js";
import { BrowsePage } from "./browse.js";
import { call, isSignedIn, setCredential, whenUnauthenticated } from "./calls.js";
import { JobPage } from "./job.js";
import { JobsPage } from "./jobs.js";
import { useEffect, useLayoutEffect, useRef, useState } from "./libraries/hooks.js";
import { h, render } from "./libraries/preact.js";
import { shown, useLoaded, useTitle } from "./loading.js";
import { currentRoute } from "./routes.js";
import { shell } from "./shell.js";
import { SignInPage } from "./sign-in.js";
import { TablePage } from "./table.js";
import { TransactionsPage } from "./transactions.js";
import { html } from "./view.js";

/**
 * The props of a page.
 *
 * @typedef {import("./caller.js").Caller} Caller
 * @typedef {{ id: import("./format.js").Identifier, tab: string | undefined, caller: Caller }} PageProps
 */

/**
 * The pages, each with the link of the navigation that belongs to it.
 *
 * @type {ReadonlyMap<string, readonly [page: (props: PageProps) => import("./view.js").Children, link: string]>}
 */
const pages = new Map([
  ["tables", [BrowsePage, "tables"]],
  ["table", [TablePage, "tables"]],
  ["jobs", [JobsPage, "jobs"]],
  ["job", [JobPage, "jobs"]],
  ["transactions", [TransactionsPage, "transactions"]],
  ["access", [AccessPage, "access"]],
]);

/** Shows the sign-in form until the caller is known. */
function App() {
  const [{ isKept, caller, message }, setSession] = useState(
    /** @type {{ isKept: boolean, caller?: Caller, message?: string }} */ ({ isKept: isSignedIn() }),
  );
  useLayoutEffect(
    () =>
      whenUnauthenticated(() => {
        setCredential(undefined);
        const message = "Your credential is not accepted any more. Sign in again.";
        // The form itself reports a wrong credential.
        setSession((before) => (before.isKept ? { isKept: false, message } : before));
      }),
    [],
  );
  const onCaller = (/** @type {Caller} */ described) => setSession({ isKept: true, caller: described });
  const onSignOut = () => {
    setCredential(undefined);
    setSession({ isKept: false });
  };
  if (caller !== undefined) return html`<${Console} caller=${caller} onSignOut=${onSignOut} />`;
  return isKept
    ? html`<${Resumed} onCaller=${onCaller} />`
    : html`<${SignInPage} onCaller=${onCaller} message=${message} />`;
}

/** Describes the caller of a credential that the tab has stored. @param {{ onCaller: (caller: Caller) => void }} props */
function Resumed({ onCaller }) {
  const described = useLoaded((signal) => call("describeCaller", {}, signal));
  useEffect(() => {
    if (described.result !== undefined) onCaller(described.result);
  }, [described.result]);
  return html`<main class="container">${shown(described, () => "")}</main>`;
}

/** Shows the page of the URL's fragment within the frame of all pages. @param {{ caller: Caller, onSignOut: () => void }} props */
function Console({ caller, onSignOut }) {
  const [{ page, id, tab }, setRoute] = useState(currentRoute);
  useEffect(() => {
    const follow = () => setRoute(currentRoute());
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  const [Page, part] = pages.get(page) ?? [MissingPage, page];
  const place = [page, ...id].join("/");
  const last = useRef(/** @type {string | undefined} */ (undefined));
  useLayoutEffect(() => {
    const current = document.querySelector("nav.tabs [aria-current=page]");
    // On a narrow screen, the tabs are wider than their visible part.
    current?.scrollIntoView({ block: "nearest", inline: "center" });
    // The pressed element no longer exists, so the focus moves to the heading, or to the tabs if they remain.
    const isSame = last.current === place;
    const target = isSame ? current : document.querySelector("h1");
    if (last.current !== undefined && target instanceof HTMLElement) target.focus({ preventScroll: isSame });
    last.current = place;
  }, [place, tab]);
  return shell(caller, part, onSignOut, html`<${Page} key=${place} id=${id} tab=${tab} caller=${caller} />`);
}

function MissingPage() {
  useTitle("Not found");
  return html`<h1 tabindex="-1">There is no such page</h1><p><a href="#/tables">All tables</a></p>`;
}

render(h(App, null), document.getElementById("app") ?? document.body);
