import { entriesOf } from "./caller.js";
import { useState } from "./libraries/hooks.js";
import { linkTo } from "./routes.js";
import { html, icon } from "./view.js";

/** @typedef {import("./view.js").Children} Children */

export const mark = html`<img src="console/icon.svg" alt="" width="26" height="26" />`;

/**
 * What is around every page.
 *
 * @param {import("./caller.js").Caller} caller
 * @param {string} page The one that is shown.
 * @param {() => void} onSignOut
 * @param {Children} content
 */
export function shell(caller, page, onSignOut, content) {
  const pages = [
    ["tables", "Tables"],
    ["jobs", "Jobs"],
    ["transactions", "Transactions"],
    ...(entriesOf(caller, "admin").length > 0 ? [["access", "Access"]] : []),
  ];
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <header>
      <div class="container">
        <a class="brand" href=${linkTo("tables")} aria-label="Tiltyard, all tables">${mark}<span>Tiltyard</span></a>
        ${links("Pages", "pages", pages, page, linkTo)}
        <span class="principal" title=${caller.principal}>${caller.principal}</span>
        <${ThemeButton} />
        <button type="button" class="quiet" onClick=${onSignOut}>Sign out</button>
      </div>
    </header>
    <main id="main" class="container" tabindex="-1">${content}</main>`;
}

/** @param {Event} event */
function skip(event) {
  // The fragment of the URL says which page this is.
  event.preventDefault();
  document.getElementById("main")?.focus();
}

/**
 * Links to parts, of which one is shown.
 *
 * @param {string} label
 * @param {string} name Of the class.
 * @param {readonly (readonly string[])[]} parts Key and text of each.
 * @param {string} shown The key of the one that is shown.
 * @param {(key: string) => string} href
 */
export const links = (label, name, parts, shown, href) =>
  html`<nav class=${name} aria-label=${label}>${parts.map(
    ([key = "", text]) => html`<a href=${href(key)} aria-current=${key === shown ? "page" : undefined}>${text}</a>`,
  )}</nav>`;

/** Chooses between light and dark; until then the system's own preference holds. */
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
      // It holds until the page is loaded again.
    }
  }
  const label = isDark ? "Use light colours" : "Use dark colours";
  return html`<button type="button" class="quiet small" aria-label=${label} title=${label} onClick=${toggle}>${icon(isDark ? "sun" : "moon")}</button>`;
}

/** Where something is, as links; the last one is the page itself. @param {readonly (readonly [text: Children, href?: string])[]} steps */
export const breadcrumb = (steps) =>
  html`<nav aria-label="breadcrumb"><ul>${steps.map(
    ([text, href], index) =>
      html`<li>${
        index === steps.length - 1
          ? html`<span aria-current="page">${text}</span>`
          : href === undefined
            ? text
            : html`<a href=${href}>${text}</a>`
      }</li>`,
  )}</ul></nav>`;

/** Where an object is. @param {import("./format.js").Identifier} id @param {import("./caller.js").Caller} caller */
export function breadcrumbOf(id, caller) {
  const entries = entriesOf(caller, "reader");
  const isReadable = (/** @type {number} */ length) =>
    entries.some((entry) => entry.length <= length && entry.every((part, index) => id[index] === part));
  return breadcrumb([
    ["Catalog", linkTo("tables")],
    ...id.map((part, index) => {
      const here = id.slice(0, index + 1);
      return isReadable(here.length)
        ? /** @type {const} */ ([part, linkTo("tables", here)])
        : /** @type {const} */ ([part]);
    }),
  ]);
}
