import { entriesOf } from "./caller.js";
import { h, icon } from "./dom.js";
import { linkTo } from "./routes.js";

export function mark() {
  return h("img", { src: "console/icon.svg", alt: "", width: "26", height: "26" });
}

/**
 * What is around every page.
 *
 * @param {import("./caller.js").Caller} caller
 * @param {() => void} signOut
 */
export function shell(caller, signOut) {
  const links = [
    ["tables", "Tables"],
    ["jobs", "Jobs"],
    ["transactions", "Transactions"],
    ...(entriesOf(caller, "admin").length > 0 ? [["access", "Access"]] : []),
  ].map(([page = "", text]) => h("a", { href: linkTo(page), "data-page": page }, text));
  const main = h("main", { id: "main", tabindex: "-1" });
  const root = h(
    "div",
    { class: "shell" },
    h("a", { class: "skip", href: "#main", onclick: skip }, "Skip to the content"),
    h(
      "header",
      { class: "top" },
      h(
        "a",
        { class: "brand", href: linkTo("tables"), "aria-label": "Tiltyard, all tables" },
        mark(),
        h("span", {}, "Tiltyard"),
      ),
      h("nav", { "aria-label": "Pages" }, links),
      h(
        "div",
        { class: "account" },
        h("span", { class: "principal", title: caller.principal }, caller.principal),
        themeButton(),
        h("button", { type: "button", class: "quiet", onclick: signOut }, "Sign out"),
      ),
    ),
    main,
  );

  /** @param {Event} event */
  function skip(event) {
    // The fragment of the URL says which page this is.
    event.preventDefault();
    main.focus();
  }

  return {
    root,
    main,
    /** @param {string} page */
    setPage(page) {
      for (const link of links)
        if (link.dataset.page === page) link.setAttribute("aria-current", "page");
        else link.removeAttribute("aria-current");
    },
  };
}

/** Chooses between light and dark; until then the system's own preference holds. */
function themeButton() {
  const button = h("button", { type: "button", class: "quiet icon-button", onclick: toggle });
  const isDark = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen === undefined ? matchMedia("(prefers-color-scheme: dark)").matches : chosen === "dark";
  };
  function show() {
    button.replaceChildren(icon(isDark() ? "sun" : "moon"));
    button.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
  }
  function toggle() {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem("tiltyard.theme", theme);
    } catch {
      // It holds until the page is loaded again.
    }
    show();
  }
  show();
  return button;
}

/**
 * Where an object is, as links.
 *
 * @param {import("./format.js").Identifier} id
 * @param {import("./caller.js").Caller} caller
 */
export function breadcrumb(id, caller) {
  const entries = entriesOf(caller, "reader");
  const isReadable = (/** @type {number} */ length) =>
    entries.some((entry) => entry.length <= length && entry.every((part, index) => id[index] === part));
  const steps = [
    h("li", {}, h("a", { href: linkTo("tables") }, "Catalog")),
    ...id.map((part, index) => {
      const isLast = index === id.length - 1;
      if (isLast) return h("li", {}, h("span", { "aria-current": "page" }, part));
      const here = id.slice(0, index + 1);
      return h(
        "li",
        {},
        isReadable(here.length) ? h("a", { href: linkTo("tables", here) }, part) : h("span", {}, part),
      );
    }),
  ];
  return h("nav", { class: "breadcrumb", "aria-label": "Where this is" }, h("ol", {}, steps));
}
