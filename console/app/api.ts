import {
  type CatalogContracts,
  httpRequest,
  type Identifier,
  type ManagementContracts,
  type QueryOf,
  type RequestShape,
  type ResponseOf,
} from "@tiltyard/protocol";
import type { z } from "zod";

type Operations = CatalogContracts & ManagementContracts;
export type OperationName = keyof Operations;
export type AnswerTo<Name extends OperationName> = ResponseOf<Operations[Name]>;

/** The parts of the object's identifier with the fields of the operation's query and body. */
export type RequestTo<Name extends OperationName> = { readonly id?: Identifier; readonly indexName?: string } & QueryOf<
  Operations[Name]
> &
  Omit<z.input<Operations[Name]["body"]>, "id" | "identity" | "context">;

export type Job = AnswerTo<"describeJob">["job"];
export type JobSummary = AnswerTo<"listJobs">["jobs"][number];

/** The form of each operation's request, which the bundler inserts. */
declare const OPERATIONS: Readonly<Record<OperationName, RequestShape>>;

/** Returns the current token of a session; undefined after the end of the session. */
export type TokenSource = () => Promise<string | undefined>;

type Credential =
  | { readonly kind: "api-key" | "token"; readonly value: string }
  | { readonly kind: "session"; readonly token: TokenSource };

/** The URL of the service, whatever path it is served under. */
const base = new URL(".", document.baseURI);
const storageKey = "tiltyard.credential";

/** The message about a page instead of JSON, with which a proxy may respond after the end of its own session. */
const notCatalog = "A proxy responded instead of the catalog. Reload the page, and sign in to the proxy.";

/** An error response of the catalog, or the lack of a response. */
export class ApiError extends Error {
  /** The HTTP status; 0 without a response. */
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

let credential = readCredential();
/** The listener for a credential that is no longer accepted. */
let onUnauthenticated = (_reason: string) => {};

function readCredential(): Credential | undefined {
  try {
    const kept = sessionStorage.getItem(storageKey);
    return kept === null ? undefined : JSON.parse(kept);
  } catch {
    return undefined;
  }
}

export const isSignedIn = () => credential !== undefined;

/**
 * Stores the credential until the tab closes: in its session storage, or in memory if that is unavailable. A session
 * stores its tokens itself. The credential is never part of a URL.
 *
 * @param next The new credential; undefined deletes the current one.
 */
export function setCredential(next: Credential | undefined): void {
  credential = next;
  try {
    if (next === undefined || next.kind === "session") sessionStorage.removeItem(storageKey);
    else sessionStorage.setItem(storageKey, JSON.stringify(next));
  } catch {
    // The credential remains in memory.
  }
}

export function whenUnauthenticated(listener: (reason: string) => void): void {
  onUnauthenticated = listener;
}

/** Calls an operation according to its contract. */
export async function call<Name extends OperationName>(
  name: Name,
  request: RequestTo<Name>,
  signal?: AbortSignal,
): Promise<AnswerTo<Name>> {
  const shape = OPERATIONS[name];
  // Unset filters are empty.
  const isUnset = ([field, value]: [string, unknown]) => shape.query.includes(field) && String(value ?? "") === "";
  const given = Object.fromEntries(Object.entries(request).filter((each) => !isUnset(each)));
  const { method, path, json } = httpRequest(shape, given);
  const sent = credential;
  const authentication = await credentialHeaders();
  let response: Response;
  let text: string;
  try {
    response = await fetch(new URL(path.slice(1), base), {
      method,
      headers: { ...authentication, ...(method === "POST" && { "content-type": "application/json" }) },
      credentials: "omit",
      cache: "no-store",
      body: json ?? null,
      signal: signal ?? null,
    });
    text = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "The catalog does not respond. Is it running, and is this machine online?");
  }
  const answer = parse(text);
  if (response.ok) {
    if (answer === undefined && text !== "") throw new ApiError(0, notCatalog);
    return answer ?? {};
  }
  const reason = answer?.detail ?? `The catalog responded with ${response.status}.`;
  // The user may have signed in with another credential meanwhile.
  if (response.status === 401 && sent !== undefined && sent === credential) onUnauthenticated(reason);
  throw new ApiError(response.status, reason);
}

async function credentialHeaders(): Promise<Record<string, string>> {
  if (credential === undefined) return {};
  if (credential.kind === "api-key") return { "x-api-key": credential.value };
  const token = "value" in credential ? credential.value : await currentToken(credential.token);
  return { authorization: `Bearer ${token}` };
}

async function currentToken(source: TokenSource): Promise<string> {
  let token: string | undefined;
  try {
    token = await source();
  } catch {
    throw new ApiError(0, "The issuer of your sign-in does not respond.");
  }
  if (token !== undefined) return token;
  const reason = "the session has ended";
  onUnauthenticated(reason);
  throw new ApiError(401, reason);
}

function parse(text: string) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
