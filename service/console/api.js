/**
 * @typedef {import("@tiltyard/protocol").Contracts} Contracts
 * @typedef {import("@tiltyard/protocol").ManagementContracts} ManagementContracts
 * @typedef {import("./format.js").Identifier} Identifier
 */

/**
 * @template {import("@tiltyard/protocol").AnyContract} C
 * @typedef {import("@tiltyard/protocol").ResponseOf<C>} Answer
 */

/**
 * The credential of the caller.
 *
 * @typedef {{ readonly kind: "api-key" | "token", readonly value: string }} Credential
 */

/** Where the service is, whatever path it is served under. */
const base = new URL(".", document.baseURI);
const storageKey = "tiltyard.credential";

/** What the catalog answered instead of a result, or that it gave no answer. */
export class ApiError extends Error {
  /**
   * @param {number} status 0 when there was no answer.
   * @param {string} message
   */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** @type {Credential | undefined} */
let credential = readCredential();
/** Called when the credential is not accepted any more. */
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
 * Keeps the credential for as long as the tab is open: in its session storage, or in memory
 * where there is none. It is never a part of a URL.
 *
 * @param {Credential | undefined} next Undefined forgets it.
 */
export function setCredential(next) {
  credential = next;
  try {
    if (next === undefined) sessionStorage.removeItem(storageKey);
    else sessionStorage.setItem(storageKey, JSON.stringify(next));
  } catch {
    // Kept in memory alone.
  }
}

/** @param {() => void} listener */
export function whenUnauthenticated(listener) {
  onUnauthenticated = listener;
}

/** What joins an identifier's parts in a request: `$`, unless a part has it. @param {Identifier} id */
export function delimiterFor(id) {
  let delimiter = "$";
  while (id.some((part) => part.includes(delimiter))) delimiter = delimiter === "$" ? "~" : `${delimiter}~`;
  return delimiter;
}

/**
 * Calls an operation.
 *
 * @param {"GET" | "POST"} method
 * @param {string} path With `{id}` for the identifier.
 * @param {{ id?: Identifier, query?: Readonly<Record<string, unknown>>, body?: object, signal?: AbortSignal | undefined }} [request]
 * @returns {Promise<any>}
 */
async function call(method, path, { id, query = {}, body, signal } = {}) {
  const delimiter = delimiterFor(id ?? []);
  const joined = id === undefined || id.length === 0 ? delimiter : id.join(delimiter);
  const url = new URL(path.replace("{id}", encodeURIComponent(joined)), base);
  for (const [name, value] of Object.entries({ ...query, ...(delimiter !== "$" && { delimiter }) }))
    if (value !== undefined && value !== "") url.searchParams.set(name, String(value));

  /** @type {Record<string, string>} */
  const headers = method === "POST" ? { "content-type": "application/json" } : {};
  if (credential?.kind === "api-key") headers["x-api-key"] = credential.value;
  if (credential?.kind === "token") headers.authorization = `Bearer ${credential.value}`;

  let response;
  let text;
  try {
    response = await fetch(url, {
      method,
      headers,
      credentials: "omit",
      cache: "no-store",
      ...(method === "POST" && { body: JSON.stringify(body ?? {}) }),
      ...(signal !== undefined && { signal }),
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

/** @param {string} text */
function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * A page of a list.
 *
 * @typedef {{ page_token?: string | undefined, limit?: number, signal?: AbortSignal | undefined }} Page
 */

/** @param {Page & Record<string, unknown>} page */
function split({ signal, ...query }) {
  return { query, signal };
}

// ----- The protocol

/** @param {Identifier} id @param {Page} page @returns {Promise<Answer<Contracts["listNamespaces"]>>} */
export const listNamespaces = (id, page) => call("GET", "v1/namespace/{id}/list", { id, ...split(page) });

/** @param {Identifier} id @param {AbortSignal} signal @returns {Promise<Answer<Contracts["describeNamespace"]>>} */
export const describeNamespace = (id, signal) => call("POST", "v1/namespace/{id}/describe", { id, signal });

/** @param {Identifier} id @param {Page} page @returns {Promise<Answer<Contracts["listTables"]>>} */
export const listTables = (id, page) => call("GET", "v1/namespace/{id}/table/list", { id, ...split(page) });

/**
 * @param {Identifier} id
 * @param {{ load_detailed_metadata?: boolean, check_declared?: boolean }} body
 * @param {AbortSignal} signal
 * @returns {Promise<Answer<Contracts["describeTable"]>>}
 */
export const describeTable = (id, body, signal) => call("POST", "v1/table/{id}/describe", { id, body, signal });

/** @param {Identifier} id @param {string | undefined} predicate Of all rows when absent. @param {AbortSignal} signal @returns {Promise<Answer<Contracts["countTableRows"]>>} */
export const countRows = (id, predicate, signal) =>
  call("POST", "v1/table/{id}/count_rows", { id, body: { predicate }, signal });

/** @param {Identifier} id @param {string} column @returns {Promise<Answer<Contracts["alterTableBackfillColumns"]>>} */
export const fillColumn = (id, column) => call("POST", "v1/table/{id}/backfill_column", { id, body: { column } });

/** @param {Identifier} id @returns {Promise<Answer<Contracts["refreshMaterializedView"]>>} */
export const refreshView = (id) => call("POST", "v1/materialized_view/{id}/refresh", { id });

/** @param {Identifier} id @param {Page & { branch?: string | undefined }} page @returns {Promise<Answer<Contracts["listTableVersions"]>>} */
export const listTableVersions = (id, page) => {
  const { query, signal } = split({ ...page, descending: true });
  return call("POST", "v1/table/{id}/version/list", { id, query, signal });
};

/** @param {Identifier} id @returns {Promise<Answer<Contracts["describeTransaction"]>>} */
export const describeTransaction = (id, /** @type {AbortSignal} */ signal) =>
  call("POST", "v1/transaction/{id}/describe", { id, signal });

/**
 * @typedef {Answer<Contracts["listTableTags"]>["tags"]} Tags
 * @typedef {Answer<Contracts["listTableBranches"]>["branches"]} Branches
 */

/** @param {Identifier} id @param {AbortSignal} signal @returns {Promise<Tags>} */
export const listTags = (id, signal) => all("v1/table/{id}/tags/list", "tags", id, signal);

/** @param {Identifier} id @param {AbortSignal} signal @returns {Promise<Branches>} */
export const listBranches = (id, signal) => all("v1/table/{id}/branches/list", "branches", id, signal);

/**
 * Reads all pages of a map: tags and branches are few.
 *
 * @param {string} path
 * @param {string} field
 * @param {Identifier} id
 * @param {AbortSignal} signal
 */
async function all(path, field, id, signal) {
  /** @type {Record<string, any>} */
  const found = {};
  /** @type {string | undefined} */
  let page_token;
  do {
    const answer = await call("POST", path, { id, query: { page_token }, signal });
    Object.assign(found, answer[field]);
    page_token = answer.page_token || undefined;
  } while (page_token !== undefined);
  return found;
}

// ----- Management

/** @returns {Promise<Answer<ManagementContracts["describeCaller"]>>} */
export const describeCaller = () => call("GET", "management/v1/caller/describe");

/** @param {Page} page @returns {Promise<Answer<ManagementContracts["listPrincipals"]>>} */
export const listPrincipals = (page) => call("GET", "management/v1/principal/list", split(page));

/** @param {Page} page @returns {Promise<Answer<ManagementContracts["listApiKeys"]>>} */
export const listApiKeys = (page) => call("GET", "management/v1/api_key/list", split(page));

/** @param {object} body @returns {Promise<Answer<ManagementContracts["createApiKey"]>>} */
export const createApiKey = (body) => call("POST", "management/v1/api_key/create", { body });

/** @param {string} api_key_id */
export const revokeApiKey = (api_key_id) => call("POST", "management/v1/api_key/revoke", { body: { api_key_id } });

/** @param {Identifier} id @param {Page} page @returns {Promise<Answer<ManagementContracts["listGrants"]>>} */
export const listGrants = (id, page) => call("GET", "management/v1/namespace/{id}/grant/list", { id, ...split(page) });

/** @param {Identifier} id @param {string} principal @param {string} role */
export const putGrant = (id, principal, role) =>
  call("POST", "management/v1/namespace/{id}/grant/put", { id, body: { principal, role } });

/** @param {Identifier} id @param {string} principal */
export const revokeGrant = (id, principal) =>
  call("POST", "management/v1/namespace/{id}/grant/revoke", { id, body: { principal } });

/**
 * @param {Identifier} id
 * @param {Page & { table?: string, principal?: string, status?: string, since_millis?: number | undefined }} page
 * @returns {Promise<Answer<ManagementContracts["listTransactions"]>>}
 */
export const listTransactions = (id, page) =>
  call("GET", "management/v1/namespace/{id}/transaction/list", { id, ...split(page) });

/** @typedef {Answer<ManagementContracts["describeJob"]>["job"]} Job */

/**
 * @param {Identifier} id
 * @param {Page & { table?: string, principal?: string, status?: string }} page
 * @returns {Promise<Answer<ManagementContracts["listJobs"]>>}
 */
export const listJobs = (id, page) => call("GET", "management/v1/namespace/{id}/job/list", { id, ...split(page) });

/** @param {Identifier} id @param {AbortSignal} signal @returns {Promise<Answer<ManagementContracts["describeJob"]>>} */
export const describeJob = (id, signal) => call("GET", "management/v1/job/{id}/describe", { id, signal });

/** @param {Identifier} id @param {AbortSignal} signal @returns {Promise<Answer<ManagementContracts["describeJobLog"]>>} */
export const describeJobLog = (id, signal) => call("GET", "management/v1/job/{id}/log", { id, signal });

/** @param {Identifier} id @returns {Promise<Answer<ManagementContracts["cancelJob"]>>} */
export const cancelJob = (id) => call("POST", "management/v1/job/{id}/cancel", { id });

/** @param {Identifier} id @returns {Promise<Answer<ManagementContracts["retryJob"]>>} */
export const retryJob = (id) => call("POST", "management/v1/job/{id}/retry", { id });

/** @typedef {Answer<ManagementContracts["listTableRows"]>} FirstRows */

/** @param {Identifier} id @param {number} limit @param {AbortSignal} signal @returns {Promise<FirstRows>} */
export const listTableRows = (id, limit, signal) =>
  call("GET", "management/v1/table/{id}/row/list", { id, query: { limit }, signal });

/** @param {Identifier} id @param {Page} page @returns {Promise<Answer<ManagementContracts["listDroppedTables"]>>} */
export const listDroppedTables = (id, page) =>
  call("GET", "management/v1/namespace/{id}/dropped_table/list", { id, ...split(page) });

/** @param {Identifier} id @param {number} dropped_id @returns {Promise<Answer<ManagementContracts["undropTable"]>>} */
export const undropTable = (id, dropped_id) =>
  call("POST", "management/v1/table/{id}/undrop", { id, body: { dropped_id } });

/** @param {Identifier} id @param {boolean} isProtected */
export const setProtected = (id, isProtected) =>
  call("POST", `management/v1/table/{id}/${isProtected ? "protect" : "unprotect"}`, { id });
