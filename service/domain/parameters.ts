/** What a request has for whoever carries it out, as the properties of its transaction. */
export function parametersOf(request: Readonly<Record<string, unknown>>): Record<string, string> {
  const { id: _, indexName: __, delimiter: ___, identity: ____, context: _____, ...parameters } = request;
  return Object.fromEntries(
    Object.entries(parameters).flatMap(([key, value]) => (value === undefined ? [] : [[key, String(value)]])),
  );
}
