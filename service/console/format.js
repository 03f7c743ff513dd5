/** @typedef {readonly string[]} Identifier */

const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const timeOnly = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const dayOnly = new Intl.DateTimeFormat(undefined, { dateStyle: "full" });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });

/** @type {readonly (readonly [Intl.RelativeTimeFormatUnit, number])[]} */
const units = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

/** @param {number} millis */
export function ago(millis) {
  const seconds = (millis - Date.now()) / 1000;
  const [unit, size] = units.find(([, length]) => Math.abs(seconds) >= length) ?? /** @type {const} */ (["second", 1]);
  if (unit === "second") return Math.abs(seconds) < 10 ? "just now" : relative.format(Math.round(seconds), unit);
  return relative.format(Math.trunc(seconds / size), unit);
}

/** @param {number} millis */
export const dateAndTime = (millis) => absolute.format(millis);
/** @param {number} millis */
export const timeOfDay = (millis) => timeOnly.format(millis);
/** @param {number} millis */
export const day = (millis) => dayOnly.format(millis);

/** @param {number} count The number of bytes. */
export function bytes(count) {
  const names = ["bytes", "KiB", "MiB", "GiB"];
  const power = Math.min(names.length - 1, count === 0 ? 0 : Math.floor(Math.log2(count) / 10));
  const value = count / 1024 ** power;
  return `${power === 0 ? value : value.toFixed(1)} ${names[power]}`;
}

/** Formats an identifier for display. @param {Identifier} id */
export const nameOf = (id) => (id.length === 0 ? "the whole catalog" : id.join("$"));

/**
 * Parses an identifier that a user entered: its parts, separated by `$`. Nothing and `$` stand for the root.
 *
 * @param {string} text
 * @returns {Identifier}
 */
export function parseName(text) {
  const trimmed = text.trim();
  return trimmed === "" || trimmed === "$" ? [] : trimmed.split("$");
}
