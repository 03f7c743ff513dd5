import { type AnyContract, CatalogError } from "@tiltyard/protocol";
import { createMiddleware } from "hono/factory";
import { authorize as requireAccess } from "../../auth/authorize.ts";
import type { AppContext, AppEnv } from "../context.ts";

/** Checks the rights that the path requires before the body is read. @throws CatalogError PermissionDenied */
export function authorizePath({ access }: AnyContract) {
  return createMiddleware<AppEnv>(async function authorizePath(c, next) {
    requireAccess(principalOf(c), access(c.get("target")));
    await next();
  });
}

/** Checks the additional rights that fields of the query and the body require. @throws CatalogError PermissionDenied */
export function authorizeFields({ bodyAccess }: AnyContract) {
  return createMiddleware<AppEnv>(async function authorizeFields(c, next) {
    requireAccess(principalOf(c), bodyAccess(c.get("request") as never));
    await next();
  });
}

/** Rejects an operation on rows with 406, because the operator has disabled them. */
export function refuseRows(): never {
  throw new CatalogError(
    "Unsupported",
    "this catalog serves no operations on rows (TILTYARD_DATA_OPERATIONS=off): open the table at its location",
  );
}

/** Returns the caller. Its absence is a bug, because `authenticate` precedes this call in every operation. */
export function principalOf(c: AppContext) {
  const principal = c.get("principal");
  if (principal === undefined) throw new Error("the request was not authenticated");
  return principal;
}
