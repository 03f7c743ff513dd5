/** Two failures in one: that of the work, and that of cleaning up after it. Node 22 has no class for it. */
export function suppressedError(error: unknown, suppressed: unknown, message: string): Error {
  if (typeof SuppressedError === "function") return new SuppressedError(error, suppressed, message);
  return Object.assign(new Error(message), { name: "SuppressedError", error, suppressed });
}

/** Told by the name, which what TypeScript makes of `using` for Node 22 has, too. */
export function isSuppressedError(error: unknown): error is SuppressedError {
  return error instanceof Error && error.name === "SuppressedError";
}
