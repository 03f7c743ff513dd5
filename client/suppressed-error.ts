/** Creates an error with two failures: that of the work and that of its cleanup. Node 22 has no class for it. */
export function suppressedError(error: unknown, suppressed: unknown, message: string): Error {
  if (typeof SuppressedError === "function") return new SuppressedError(error, suppressed, message);
  return Object.assign(new Error(message), { name: "SuppressedError", error, suppressed });
}

/**
 * Reports whether an error is a SuppressedError, by its name. TypeScript's implementation of `using` for Node 22 sets
 * the name too.
 */
export function isSuppressedError(error: unknown): error is SuppressedError {
  return error instanceof Error && error.name === "SuppressedError";
}
