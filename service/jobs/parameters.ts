import { type AnyContract, contracts, managementContracts, viewDefinitionPrefix } from "@tiltyard/protocol";

/** The fields of a request that identify its object and its caller and are no parameters. */
const ofEveryRequest: readonly string[] = ["id", "database", "indexName", "delimiter", "identity", "context"];

/** The parameters that the catalog derives from a request. */
const resolved = ["cluster_definition", "function_binding", "failed_rows_of"];

/** The names of parameters, by the operation that opens the job. */
const namesByOperation = new Map(
  Object.values<AnyContract>({ ...contracts, ...managementContracts }).map(({ operationId, query, body }) => {
    const names = Object.keys({ ...query.shape, ...body.shape });
    return [operationId, new Set([...names.filter((name) => !ofEveryRequest.includes(name)), ...resolved])] as const;
  }),
);

/** The parameter with the fields of a request that its contract only accepts as options, as JSON. */
const optionsParameter = "options";

/** Returns the fields of a request as the parameters of its job, as text. */
export function parametersOf(
  contract: Pick<AnyContract, "operationId">,
  request: Readonly<Record<string, unknown>>,
): Record<string, string> {
  const optionNames = optionNamesOf(contract, request);
  const given = Object.entries(request).filter(
    ([name, value]) => value !== undefined && value !== null && !ofEveryRequest.includes(name),
  );
  const named = given.filter(([name]) => !optionNames.includes(name));
  const options = given.filter(([name]) => optionNames.includes(name));
  return {
    ...Object.fromEntries(named.map(([name, value]) => [name, String(value)])),
    ...(options.length > 0 && {
      [optionsParameter]: JSON.stringify(Object.fromEntries(options)),
    }),
  };
}

/** Returns the names of the fields of a request that its contract only accepts as options. */
export function optionNamesOf(
  { operationId }: Pick<AnyContract, "operationId">,
  request: Readonly<Record<string, unknown>>,
): readonly string[] {
  const names = namesByOperation.get(operationId);
  return Object.entries(request).flatMap(([name, value]) =>
    names?.has(name) || ofEveryRequest.includes(name) || value === undefined || value === null ? [] : name,
  );
}

/** Reports whether a name is that of a parameter of such a job. */
export function isParameter(operation: string, name: string): boolean {
  return (
    name === optionsParameter ||
    name.startsWith(viewDefinitionPrefix) ||
    namesByOperation.get(operation)?.has(name) === true
  );
}
