import { type AnyContract, contracts, managementContracts, viewDefinitionPrefix } from "@tiltyard/protocol";

/** The fields of a request that identify its object and its caller and are no parameters. */
const ofEveryRequest: readonly string[] = ["id", "database", "indexName", "delimiter", "identity", "context"];

/** The names of parameters, by the operation that opens the job. */
const namesByOperation = new Map(
  Object.values<AnyContract>({ ...contracts, ...managementContracts }).map(({ operationId, query, body }) => {
    const names = Object.keys({ ...query.shape, ...body.shape });
    return [operationId, new Set(names.filter((name) => !ofEveryRequest.includes(name)))] as const;
  }),
);

/** Returns the fields of a request as the parameters of its job, as text. */
export function parametersOf(request: Readonly<Record<string, unknown>>): Record<string, string> {
  const given = Object.entries(request).filter(
    ([name, value]) => !ofEveryRequest.includes(name) && value !== undefined,
  );
  return Object.fromEntries(given.map(([name, value]) => [name, String(value)]));
}

/** Reports whether a name is that of a parameter of such a job. */
export function isParameter(operation: string, name: string): boolean {
  return name.startsWith(viewDefinitionPrefix) || namesByOperation.get(operation)?.has(name) === true;
}
