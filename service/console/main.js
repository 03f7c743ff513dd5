import { accessPage } from "./access.js";
import { ApiError, describeCaller, isSignedIn, setCredential, whenUnauthenticated } from "./api.js";
import { browsePage } from "./browse.js";
import { h } from "./dom.js";
import { jobPage } from "./job.js";
import { jobsPage } from "./jobs.js";
import { loading, problem } from "./list.js";
import { currentRoute } from "./routes.js";
import { shell } from "./shell.js";
import { signInPage } from "./sign-in.js";
import { tablePage } from "./table.js";
import { transactionsPage } from "./transactions.js";

/**
 * What a page gets: it stops all that it does when the signal is aborted.
 *
 * @typedef {{ id: import("./format.js").Identifier, tab: string | undefined, caller: import("./caller.js").Caller, signal: AbortSignal }} PageContext
 */

/** @type {Record<string, (context: PageContext) => { title: string, content: Node }>} */
const pages = {
  tables: browsePage,
  table: tablePage,
  jobs: jobsPage,
  job: jobPage,
  transactions: transactionsPage,
  access: accessPage,
};
/** Pages that are part of another one. @type {Record<string, string>} */
const parents = { table: "tables", job: "jobs" };

const app = document.getElementById("app") ?? document.body;
/** Ends what the present page does. */
let leaving = new AbortController();
let showRoute = () => {};

/** @param {string} [message] */
function showSignIn(message) {
  leaving.abort();
  showRoute = () => {};
  document.title = "Sign in · Tiltyard";
  app.replaceChildren(signInPage(showConsole, message));
  document.getElementById("secret")?.focus();
}

/** @param {import("./caller.js").Caller} caller */
function showConsole(caller) {
  const { root, main, setPage } = shell(caller, () => {
    setCredential(undefined);
    showSignIn();
  });
  app.replaceChildren(root);
  /** @type {string | undefined} */
  let shown;
  showRoute = () => {
    leaving.abort();
    leaving = new AbortController();
    const { page, id, tab } = currentRoute();
    const render = pages[page] ?? missingPage;
    const { title, content } = render({ id, tab, caller, signal: leaving.signal });
    document.title = `${title} · Tiltyard`;
    setPage(parents[page] ?? page);
    main.replaceChildren(content);
    // On a narrow screen the tabs are wider than what is seen of them.
    main.querySelector("nav.tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
    // What was pressed is gone: start at the heading, or stay where the tabs are.
    const target = shown === `${page}/${id}` ? main.querySelector("nav.tabs [aria-current]") : main.querySelector("h1");
    if (shown !== undefined && target instanceof HTMLElement)
      target.focus({ preventScroll: shown === `${page}/${id}` });
    shown = `${page}/${id}`;
  };
  showRoute();
}

function missingPage() {
  return {
    title: "Not found",
    content: h(
      "div",
      { class: "page" },
      h("h1", { tabindex: "-1" }, "There is no such page"),
      h("p", {}, h("a", { href: "#/tables" }, "All tables")),
    ),
  };
}

async function start() {
  if (!isSignedIn()) return showSignIn();
  app.replaceChildren(loading());
  try {
    showConsole(await describeCaller());
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return;
    app.replaceChildren(h("main", { class: "sign-in-page" }, problem(error, start)));
  }
}

whenUnauthenticated(() => {
  // A credential that is just being tried is told so in its form.
  if (document.getElementById("secret") !== null) return;
  setCredential(undefined);
  showSignIn("Your credential is not accepted any more. Sign in again.");
});
addEventListener("hashchange", () => showRoute());
start();
