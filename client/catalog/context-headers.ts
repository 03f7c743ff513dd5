/** Free-form entries that a caller and the catalog exchange. */
export type Context = Readonly<Record<string, string>>;

const prefix = "header.";

/** The headers of a single message and its connection, which the context of a response contains too. */
const messageHeaders = ["connection", "content-encoding", "content-length", "keep-alive", "transfer-encoding"];

/**
 * Returns the headers of a request: the entries with the prefix `header.`, by the rest of their names.
 *
 * @throws Error for an entry that is not a valid header.
 */
export function headersOf(context: Context): Headers {
  const headers = new Headers();
  for (const [key, value] of Object.entries(context).filter(([key]) => key.startsWith(prefix)))
    try {
      headers.set(key.slice(prefix.length), value);
    } catch {
      throw new Error(`the name or the value of the context entry ${key} is not valid in an HTTP header`);
    }
  for (const name of messageHeaders) headers.delete(name);
  return headers;
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
