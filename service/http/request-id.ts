/** What may name a request: it goes into headers, answers and the log. */
const valid = /^[A-Za-z0-9._:/+=@-]{1,128}$/;

/** The request id that a caller gave; undefined when there is none that can be used. */
export function requestIdOf(text: string | undefined): string | undefined {
  return text !== undefined && valid.test(text) ? text : undefined;
}
