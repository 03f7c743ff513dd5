import { codeOf, formatError } from "@tiltyard/protocol";
import { CatalogConnectionError, CatalogRequestError } from "../catalog/errors.ts";
import { isSuppressedError } from "../suppressed-error.ts";

const sourcesOfKey =
  "A command has its key from TILTYARD_API_KEY, tiltyard login or, on this machine, data/development.key of the current folder";

/** Formats an error for a terminal, with the errors that it suppresses. */
export function reportOf(error: unknown): string {
  const failures = failuresOf(error);
  if (failures.length > 1) return failures.map(reportOf).join("\n");
  if (error instanceof CatalogRequestError && error.status === 401) return `${error.message}. ${sourcesOfKey}`;
  if (error instanceof CatalogConnectionError) return `${error.message}. ${adviceOn(error)}`;
  return formatError(error);
}

/** Returns the advice about a catalog that does not respond, depending on OpenSSL's code of the failure. */
function adviceOn({ cause }: CatalogConnectionError): string {
  const code = (cause instanceof Error && codeOf(cause.cause)) || "";
  if (/SELF_SIGNED|UNABLE_TO/.test(code))
    return "NODE_EXTRA_CA_CERTS names the file with the certificate of a private certificate authority";
  if (code === "ERR_SSL_WRONG_VERSION_NUMBER") return "The server there does not use TLS: try http:// in the URL";
  return "tiltyard serve starts a catalog on this machine; TILTYARD_CATALOG_URL names another one";
}

/** Returns the errors within an error in chronological order, because cleanup may fail after the work itself. */
export function failuresOf(error: unknown): readonly unknown[] {
  return isSuppressedError(error) ? [...failuresOf(error.suppressed), ...failuresOf(error.error)] : [error];
}
