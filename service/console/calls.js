import { delimiterFor, httpRequest, operations } from "./contracts.js";

/**
 * @typedef {import("./contracts.js").OperationName} OperationName
 * @typedef {import("./format.js").Identifier} Identifier
 * @typedef {{ readonly kind: "api-key" | "token", readonly value: string }} Credential
 */

/**
 * @template {OperationName} Name
 * @typedef {import("./contracts.js").AnswerTo<Name>} AnswerTo
 */

/** The URL of the service, whatever path it is served under. */
const base = new URL(".", document.baseURI);
const storageKey = "tiltyard.credential";

/** An error response of the catalog, or the lack of a response. */
export class ApiError extends Error {
  /**
   * @param {number} status The HTTP status; 0 without a response.
   * @param {string} message
   */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** @type {Credential | undefined} */
let credential = readCredential();
/** The listener for a credential that is no longer accepted. */
let onUnauthenticated = () => {};

/** @returns {Credential | undefined} */
function readCredential() {
  try {
    const kept = sessionStorage.getItem(storageKey);
    return kept === null ? undefined : JSON.parse(kept);
  } catch {
    return undefined;
  }
}

export const isSignedIn = () => credential !== undefined;

/**
 * Stores the credential until the tab closes: in its session storage, or in memory if that is unavailable. The
 * credential is never part of a URL.
 *
 * @param {Credential | undefined} next The new credential; undefined deletes the current one.
 */
export function setCredential(next) {
  credential = next;
  try {
    if (next === undefined) sessionStorage.removeItem(storageKey);
    else sessionStorage.setItem(storageKey, JSON.stringify(next));
  } catch {
    // The credential remains in memory.
  }
}

/** @param {() => void} listener */
export function whenUnauthenticated(listener) {
  onUnauthenticated = listener;
}

/**
 * Calls an operation according to its contract.
 *
 * @template {OperationName} Name
 * @param {Name} name
 * @param {import("./contracts.js").RequestTo<Name>} request
 * @param {AbortSignal} [signal]
 * @returns {Promise<AnswerTo<Name>>}
 */
export async function call(name, request, signal) {
  const shape = operations[name];
  // Filters that are not set are empty.
  const isUnset = (/** @type {[string, unknown]} */ [field, value]) =>
    shape.query.includes(field) && String(value ?? "") === "";
  const given = Object.fromEntries(Object.entries(request).filter((each) => !isUnset(each)));
  const { method, path, json } = httpRequest(shape, given, { delimiter: delimiterFor(request.id ?? []) });
  const url = new URL(path.slice(1), base);

  let response;
  let text;
  try {
    response = await fetch(url, {
      method,
      headers: { ...credentialHeaders(), ...(method === "POST" && { "content-type": "application/json" }) },
      credentials: "omit",
      cache: "no-store",
      body: json ?? null,
      signal: signal ?? null,
    });
    text = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "The catalog gives no answer. Is it running, and is this machine online?");
  }
  const answer = parse(text);
  if (response.ok) return answer ?? {};
  if (response.status === 401 && credential !== undefined) onUnauthenticated();
  throw new ApiError(response.status, answer?.detail ?? `The catalog answered ${response.status}.`);
}

/** @returns {Record<string, string>} */
function credentialHeaders() {
  if (credential === undefined) return {};
  const { kind, value } = credential;
  return kind === "api-key" ? { "x-api-key": value } : { authorization: `Bearer ${value}` };
}

/** @param {string} text */
function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
