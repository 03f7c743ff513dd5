/** @typedef {import("./format.js").Identifier} Identifier */

/**
 * The current location in the console. It is the fragment of the URL, which browsers do not send to servers.
 *
 * @typedef {{ readonly page: string, readonly id: Identifier, readonly tab: string | undefined }} Route
 */

/** @returns {Route} */
export function currentRoute() {
  const [path = "", search = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [page = "", ...parts] = path.split("/").filter((part) => part !== "");
  return { page: page || "tables", id: parts.map(decode), tab: new URLSearchParams(search).get("show") ?? undefined };
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** @param {string} page @param {Identifier} [id] @param {string} [tab] */
export function linkTo(page, id = [], tab) {
  const path = ["#", page, ...id.map(encodeURIComponent)].join("/");
  return tab === undefined ? path : `${path}?show=${tab}`;
}
