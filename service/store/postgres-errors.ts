import { CatalogError, codeOf, ownValue } from "@tiltyard/protocol";
import { DatabaseError } from "pg";

/** The codes of a serialization failure and of a deadlock (PostgreSQL's class 40), after which the transaction is retried. */
const conflicts = ["40001", "40P01"];
/** The codes of constraint violations, by a concurrent transaction, which a retry sees, or by a bug. */
const constraints = ["23503", "23505"];

/** The states of an unavailable server, including resources, operators, standby, and timeouts of locks. */
const unavailable = /^(08|28|53|57|58|25006|25P03|55P03)/;
/** The codes of values that cannot be stored: a text with U+0000, or a name that is too long for an index. */
const cannotBeStored: Readonly<Record<string, string>> = {
  "22021": "a text has a character that cannot be stored, such as U+0000",
  "54000": "a name or a location is too long for the catalog's database",
};
/** The codes of Node's socket and TLS errors. */
const ofNode = /^(E(AI_)?[A-Z]+$|ERR_(SSL|TLS|SOCKET|STREAM)_|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO|CERT_|HOSTNAME_)/;
/** The messages of the driver's own errors, which have no codes. */
const ofDriver = /connection|connect|timeout|SSL/i;

/** The attempt at which a constraint violation counts as a bug. */
const constraintAttemptsMax = 4;

/** Reports whether a failed transaction may succeed after a retry. */
export function isWorthAnotherAttempt(error: unknown, attempt: number): boolean {
  const state = error instanceof DatabaseError ? (error.code ?? "") : "";
  return conflicts.includes(state) || (constraints.includes(state) && attempt < constraintAttemptsMax);
}

function isUnavailable(error: unknown): boolean {
  if (error instanceof CatalogError || !(error instanceof Error)) return false;
  if (error instanceof DatabaseError) return unavailable.test(error.code ?? "");
  if (error instanceof AggregateError) return error.errors.every(isUnavailable);
  const code = codeOf(error);
  if (code !== undefined) return ofNode.test(code);
  return error.constructor === Error && ofDriver.test(error.message);
}

/** Converts an error for the caller. A bug keeps its message, without secrets. */
export function explain(error: unknown): unknown {
  if (error instanceof CatalogError || !(error instanceof Error)) return error;
  const cause = withoutSecrets(error);
  if (isUnavailable(error))
    return new CatalogError("ServiceUnavailable", "The catalog's database cannot be used now; try again.", { cause });
  if (!(error instanceof DatabaseError)) return error;
  if (conflicts.includes(error.code ?? ""))
    return new CatalogError("ServiceUnavailable", "Too many requests change the same objects at once; try again.", {
      cause,
    });
  const problem = ownValue(cannotBeStored, error.code ?? "");
  return problem === undefined ? cause : new CatalogError("InvalidInput", problem, { cause });
}

/** Removes secrets from an error of the driver, which may contain the settings of its connection and rows of tables. */
function withoutSecrets(error: Error): Error {
  const { name, message, stack } = error;
  const errors = error instanceof AggregateError ? error.errors.map((each) => withoutSecrets(each)) : [];
  const text = [message, ...errors.map((each) => each.message)].filter(Boolean).join("; ");
  const plain = new Error(`PostgreSQL: ${text}`);
  const code = codeOf(error);
  return Object.assign(plain, { name, ...(stack !== undefined && { stack }), ...(code !== undefined && { code }) });
}
