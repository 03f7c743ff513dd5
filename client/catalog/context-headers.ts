/** Free-form entries that a caller and the catalog hand each other; requirements.md 2.5. */
export type Context = Readonly<Record<string, string>>;

const prefix = "header.";

/** The headers of a request: each entry that begins with `header.`, under the rest of its name. */
export function headersOf(context: Context): Record<string, string> {
  const entries = Object.entries(context).filter(([key]) => key.startsWith(prefix));
  return Object.fromEntries(entries.map(([key, value]) => [key.slice(prefix.length), value]));
}

/** What is left of a context for the body of a request. */
export function withoutHeaders(context: Context): Context {
  return Object.fromEntries(Object.entries(context).filter(([key]) => !key.startsWith(prefix)));
}

/** The context of an answer, with each of its headers as an entry. */
export function withHeaders(context: Context, headers: Headers): Context {
  const entries = [...headers].map(([name, value]) => [`${prefix}${name}`, value]);
  return { ...context, ...Object.fromEntries(entries) };
}
