import { type AnyContract, CatalogError } from "@tiltyard/protocol";
import type { Context } from "hono";
import { authorize, type Credential, type Principal } from "../auth/authenticator.ts";
import { credentialOfHeaders, credentialOfIdentity } from "./credential.ts";
import { incomingOf } from "./incoming.ts";
import type { OperationEnv, OperationParts, Step } from "./operation.ts";
import { createPathReader } from "./request-path.ts";

/** Admits a caller with a credential in the headers; one without may have it in the body. */
export function admitByHeaders(contract: AnyContract, parts: OperationParts): Step {
  const admit = createAdmission(contract, parts);
  return async (context, next) => {
    const credential = credentialOfHeaders((name) => context.req.header(name));
    if (credential !== undefined) await admit(context, credential);
    return next();
  };
}

/** Admits a caller whose credential is in the `identity` of the body. @throws CatalogError Unauthenticated */
export function admitByIdentity(contract: AnyContract, parts: OperationParts): Step {
  const admit = createAdmission(contract, parts);
  return async (context, next) => {
    if (context.get("principal") === undefined)
      await admit(context, credentialOfIdentity(context.get("envelope").identity ?? undefined));
    return next();
  };
}

/** Authenticates a caller, and authorizes it for the object in the path. */
function createAdmission(contract: AnyContract, parts: OperationParts) {
  const { catalog, connections, rateLimit } = parts;
  const readPath = createPathReader(contract, parts.remoteDatabases);
  return async (context: Context<OperationEnv>, credential: Credential | undefined): Promise<void> => {
    const principal = await authenticate(credential, context, parts);
    context.get("trail").principal = principal.name;
    await rateLimit(principal.name);
    const path = readPath(context.req);
    authorize(principal, contract.access(path));
    if (contract.onRows && !catalog.dataOperations)
      throw new CatalogError(
        "Unsupported",
        "this catalog does no operations on rows (TILTYARD_DATA_OPERATIONS=off): open the table at its location",
      );
    const incoming = incomingOf(context);
    connections.accept(incoming);
    // Rows may come as slowly as they are computed.
    if (context.get("takesRows")) connections.takesItsTime(incoming);
    context.set("principal", principal);
    context.set("path", path);
  };
}

/** @throws CatalogError Unauthenticated, or Throttling for an address with too many refused credentials. */
export async function authenticate(
  credential: Credential | undefined,
  context: Context,
  {
    authenticator,
    failedCredentials,
    addressOf,
  }: Pick<OperationParts, "authenticator" | "failedCredentials" | "addressOf">,
): Promise<Principal> {
  try {
    return await authenticator.authenticate(credential);
  } catch (error) {
    const isRefused = error instanceof CatalogError && error.kind === "Unauthenticated" && credential !== undefined;
    if (!isRefused) throw error;
    return failedCredentials.refuse(addressOf(incomingOf(context)), error);
  }
}
