import { type AnyContract, CatalogError } from "@tiltyard/protocol";
import { authorize, type Credential, type Principal } from "../auth/authenticator.ts";
import type { Exchange } from "./exchange.ts";
import type { OperationParts } from "./operation.ts";
import { createPathReader, type RequestPath } from "./request-path.ts";
import type { Trail } from "./trail.ts";

/** A caller that may do what its request asks for, and the object that the request names. */
interface Admitted {
  readonly principal: Principal;
  readonly path: RequestPath;
}

/** Authenticates the caller of a request, and authorizes it for the object in the path. @throws CatalogError */
type Admission = (exchange: Exchange, credential: Credential | undefined, trail: Trail) => Promise<Admitted>;

export function createAdmission(contract: AnyContract, parts: OperationParts): Admission {
  const { catalog, connections, rateLimit } = parts;
  const readPath = createPathReader(contract, parts.remoteDatabases);
  return async (exchange, credential, trail) => {
    const principal = await authenticate(credential, exchange, parts);
    trail.principal = principal.name;
    await rateLimit(principal.name);
    const path = readPath(exchange);
    authorize(principal, contract.access(path));
    if (contract.onRows && !catalog.dataOperations)
      throw new CatalogError(
        "Unsupported",
        "this catalog does no operations on rows (TILTYARD_DATA_OPERATIONS=off): open the table at its location",
      );
    const { incoming } = exchange;
    connections.accept(incoming);
    // Rows may come as slowly as they are computed.
    if (trail.takesRows) connections.takesItsTime(incoming);
    return { principal, path };
  };
}

/** @throws CatalogError Unauthenticated, or Throttling for an address with too many refused credentials. */
export async function authenticate(
  credential: Credential | undefined,
  { incoming }: Exchange,
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
    return failedCredentials.refuse(addressOf(incoming), error);
  }
}
