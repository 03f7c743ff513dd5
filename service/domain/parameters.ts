/** The fields of a request that name its object and its caller, and not what is to be done. */
const ofEveryRequest: readonly string[] = ["id", "database", "indexName", "delimiter", "identity", "context"];

/** The fields of a request for the runner of its job, as the properties of its transaction. */
export function parametersOf(request: Readonly<Record<string, unknown>>): Record<string, string> {
  const given = Object.entries(request).filter(
    ([name, value]) => !ofEveryRequest.includes(name) && value !== undefined,
  );
  return Object.fromEntries(given.map(([name, value]) => [name, String(value)]));
}
