/** The fields of a request that say what it is about and who asks, and not what is to be done. */
const ofEveryRequest: readonly string[] = ["id", "database", "indexName", "delimiter", "identity", "context"];

/** What a request has for whoever carries it out, as the properties of its transaction. */
export function parametersOf(request: Readonly<Record<string, unknown>>): Record<string, string> {
  const given = Object.entries(request).filter(
    ([name, value]) => !ofEveryRequest.includes(name) && value !== undefined,
  );
  return Object.fromEntries(given.map(([name, value]) => [name, String(value)]));
}
