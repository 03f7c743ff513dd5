import type { Identifier } from "@tiltyard/protocol";

const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const timeOnly = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const dayOnly = new Intl.DateTimeFormat(undefined, { dateStyle: "full" });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });

const units = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
] as const;

export function ago(millis: number): string {
  const seconds = (millis - Date.now()) / 1000;
  const [unit, size] = units.find(([, length]) => Math.abs(seconds) >= length) ?? (["second", 1] as const);
  if (unit === "second") return Math.abs(seconds) < 10 ? "just now" : relative.format(Math.round(seconds), unit);
  return relative.format(Math.trunc(seconds / size), unit);
}

export const counted = (count: number) => count.toLocaleString("en");
/** Formats a number with its noun, such as `1 fragment` or `1,200 rows`. */
export const amount = (count: number, noun: string) => `${counted(count)} ${noun}${count === 1 ? "" : "s"}`;
export const dateAndTime = (millis: number) => absolute.format(millis);
export const timeOfDay = (millis: number) => timeOnly.format(millis);
export const day = (millis: number) => dayOnly.format(millis);

/** Formats a number of bytes. */
export function bytes(count: number): string {
  const names = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(names.length - 1, count === 0 ? 0 : Math.floor(Math.log2(count) / 10));
  const value = count / 1024 ** power;
  return `${power === 0 ? value : value.toFixed(1)} ${names[power]}`;
}

/** Returns a name as an SQL expression. */
export const inBackticks = (name: string) => `\`${name.replaceAll("`", "``")}\``;

/** Formats an identifier for display. */
export const nameOf = (id: Identifier) => (id.length === 0 ? "the whole catalog" : id.join("$"));

/** Parses an identifier that a user entered: its parts, separated by `$`. Nothing and `$` stand for the root. */
export function parseName(text: string): Identifier {
  const trimmed = text.trim();
  return trimmed === "" || trimmed === "$" ? [] : trimmed.split("$");
}
