/** The form of a request id, which goes into headers, answers and the log. */
const valid = /^[A-Za-z0-9._:/+=@-]{1,128}$/;

/** The request id that a caller gave; undefined when there is none that can be used. */
export function requestIdOf(text: string | undefined): string | undefined {
  return text !== undefined && valid.test(text) ? text : undefined;
}

const validTraceparent = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

/** The trace that a request is part of, as W3C Trace Context writes it; undefined for anything else. */
export function traceparentOf(text: string | undefined): string | undefined {
  return text !== undefined && validTraceparent.test(text) ? text : undefined;
}
