/** What is in the catalog that hostile clients know of: a namespace with a table of three films. */
export const kept = { namespace: "kept", table: "kept$films" } as const;
