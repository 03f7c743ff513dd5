import { QueryClientProvider } from "@tanstack/preact-query";
import { type ComponentType, render } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { AccessPage } from "./access.tsx";
import { isSignedIn, setCredential, whenUnauthenticated } from "./api.ts";
import { BrowsePage } from "./browse.tsx";
import type { Caller } from "./caller.ts";
import { JobPage } from "./job.tsx";
import { JobsPage } from "./jobs.tsx";
import { createQueryClient, useCall, useTitle } from "./queries.ts";
import { currentRoute, type PageProps } from "./routes.ts";
import { onSearchKey, SearchPage } from "./search.tsx";
import { start } from "./session.ts";
import { Shell } from "./shell.tsx";
import { SignInPage } from "./sign-in.tsx";
import { TablePage } from "./table.tsx";
import { TransactionsPage } from "./transactions.tsx";
import { closeDialogs, Loaded, sentence } from "./view.tsx";

/** The pages, each with the link of the navigation that belongs to it. */
const pages: ReadonlyMap<string, readonly [page: ComponentType<PageProps>, link: string]> = new Map([
  ["tables", [BrowsePage, "tables"]],
  ["table", [TablePage, "tables"]],
  ["search", [SearchPage, "search"]],
  ["jobs", [JobsPage, "jobs"]],
  ["job", [JobPage, "jobs"]],
  ["transactions", [TransactionsPage, "transactions"]],
  ["access", [AccessPage, "access"]],
]);

const queryClient = createQueryClient();
/** The listener for the end of the session in another tab. */
let onSignedOut = () => {};
const { issuer, refused = "" } = await start(() => onSignedOut());

interface Session {
  readonly isKept: boolean;
  readonly caller?: Caller;
  readonly message?: string;
}

/** Shows the sign-in form until the caller is known. */
function App() {
  const [{ isKept, caller, message = refused }, setSession] = useState<Session>({ isKept: isSignedIn() });
  function end(text?: string) {
    setCredential(undefined);
    issuer?.forget();
    queryClient.clear();
    closeDialogs();
    // The form itself reports a wrong credential.
    setSession((before) =>
      before.isKept || text === undefined ? { isKept: false, ...(text && { message: text }) } : before,
    );
  }
  async function signOut() {
    await issuer?.signOut();
    end();
  }
  useLayoutEffect(() => {
    whenUnauthenticated((reason) =>
      end(`Your credential is no longer accepted. Sign in again. The reason: ${sentence(reason)}`),
    );
    onSignedOut = () => end("You signed out in another tab.");
  }, []);
  const onCaller = (described: Caller) => setSession({ isKept: true, caller: described });
  if (caller !== undefined) return <Console caller={caller} onSignOut={signOut} />;
  return isKept ? (
    <Resumed onCaller={onCaller} />
  ) : (
    <SignInPage onCaller={onCaller} issuer={issuer} message={message} />
  );
}

/** Describes the caller of a credential that the tab has stored. */
function Resumed({ onCaller }: { readonly onCaller: (caller: Caller) => void }) {
  const described = useCall("describeCaller", {});
  useEffect(() => {
    if (described.data !== undefined) onCaller(described.data);
  }, [described.data]);
  return (
    <main class="container">
      <Loaded query={described}>{() => ""}</Loaded>
    </main>
  );
}

/** Shows the page of the URL's fragment within the frame of all pages. */
function Console({ caller, onSignOut }: { readonly caller: Caller; readonly onSignOut: () => void }) {
  const [{ page, id, tab, state }, setRoute] = useState(currentRoute);
  // An effect after the paint would miss a navigation before it.
  useLayoutEffect(() => {
    const follow = () => {
      closeDialogs();
      setRoute(currentRoute());
    };
    addEventListener("hashchange", follow);
    addEventListener("keydown", onSearchKey);
    return () => {
      removeEventListener("hashchange", follow);
      removeEventListener("keydown", onSearchKey);
    };
  }, []);
  const [Page, part] = pages.get(page) ?? [MissingPage, page];
  const place = [page, ...id].join("/");
  const last = useRef<string>(undefined);
  useLayoutEffect(() => {
    const current = document.querySelector<HTMLElement>("nav.tabs [aria-current=page]");
    // The pressed element no longer exists, so the focus moves to the heading, or to the tabs if they remain.
    const isSame = last.current === place;
    const target = isSame ? current : document.querySelector("h1");
    if (last.current !== undefined) target?.focus({ preventScroll: isSame });
    last.current = place;
  }, [place, tab]);
  return (
    <Shell caller={caller} page={part} onSignOut={onSignOut}>
      <Page key={place} id={id} tab={tab} state={state} caller={caller} />
    </Shell>
  );
}

function MissingPage() {
  useTitle("Not found");
  return (
    <>
      <h1 tabIndex={-1}>This page does not exist</h1>
      <p>
        <a href="#/tables">All tables</a>
      </p>
    </>
  );
}

render(
  <QueryClientProvider client={queryClient}>
    <App />
  </QueryClientProvider>,
  document.getElementById("app") ?? document.body,
);
