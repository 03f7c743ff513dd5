/** The objects of the catalog that hostile clients know: a namespace with a table of three films. */
export const kept = { namespace: "kept", table: "kept$films" } as const;
