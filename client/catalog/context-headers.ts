/** Free-form entries that a caller and the catalog exchange. */
export type Context = Readonly<Record<string, string>>;

const prefix = "header.";

/** Returns the headers of a request: the entries with the prefix `header.`, by the rest of their names. */
export function headersOf(context: Context): Record<string, string> {
  const entries = Object.entries(context).filter(([key]) => key.startsWith(prefix));
  return Object.fromEntries(entries.map(([key, value]) => [key.slice(prefix.length), value]));
}

/** Returns the entries of a context that belong in the body of a request. */
export function withoutHeaders(context: Context): Context {
  return Object.fromEntries(Object.entries(context).filter(([key]) => !key.startsWith(prefix)));
}

/** Returns the context of a response with its headers as entries. */
export function withHeaders(context: Context, headers: Headers): Context {
  const entries = [...headers].map(([name, value]) => [`${prefix}${name}`, value]);
  return { ...context, ...Object.fromEntries(entries) };
}
