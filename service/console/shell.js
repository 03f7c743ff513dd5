import { entriesOf } from "./caller.js";
import { useState } from "./libraries/hooks.js";
import { linkTo } from "./routes.js";
import { html, icon } from "./view.js";

/** @typedef {import("./view.js").Children} Children */

export const mark = html`<img src="console/icon.svg" alt="" width="26" height="26" />`;

/**
 * Renders the frame of every page.
 *
 * @param {import("./caller.js").Caller} caller
 * @param {string} page The name of the current page.
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
  // The default action would change the fragment of the URL, which identifies the page.
  event.preventDefault();
  document.getElementById("main")?.focus();
}

/**
 * Renders links to parts of a page and marks the current one.
 *
 * @param {string} label
 * @param {string} name The CSS class.
 * @param {readonly (readonly string[])[]} parts The key and the text of each part.
 * @param {string} shown The key of the current part.
 * @param {(key: string) => string} href
 */
export const links = (label, name, parts, shown, href) =>
  html`<nav class=${name} aria-label=${label}>${parts.map(
    ([key = "", text]) => html`<a href=${href(key)} aria-current=${key === shown ? "page" : undefined}>${text}</a>`,
  )}</nav>`;

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
  return html`<button type="button" class="quiet small" aria-label=${label} title=${label} onClick=${toggle}>${icon(isDark ? "sun" : "moon")}</button>`;
}

/** Renders a path of links. The last step is the page itself. @param {readonly (readonly [text: Children, href?: string])[]} steps */
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

/** Renders the path to an object. @param {import("./format.js").Identifier} id @param {import("./caller.js").Caller} caller */
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
