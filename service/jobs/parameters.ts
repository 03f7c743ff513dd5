import {
  type AnyContract,
  contracts,
  derivedParameters,
  type JobParameters,
  managementContracts,
  viewDefinitionPrefix,
} from "@tiltyard/protocol";

/** The fields of a request that identify its object and its caller and are no parameters. */
const ofEveryRequest: readonly string[] = ["id", "database", "indexName", "delimiter", "identity", "context"];

/** The names of parameters, by the operation that opens the job. */
const namesByOperation = new Map(
  Object.values<AnyContract>({ ...contracts, ...managementContracts }).map(({ operationId, query, body }) => {
    const names = Object.keys({ ...query.shape, ...body.shape });
    return [
      operationId,
      new Set([...names.filter((name) => !ofEveryRequest.includes(name)), ...Object.keys(derivedParameters)]),
    ] as const;
  }),
);

/** Returns the fields that are given in a request and may be parameters of its job. */
export function givenFields(request: Readonly<Record<string, unknown>>) {
  return Object.entries(request).filter(
    ([name, value]) => value !== undefined && value !== null && !ofEveryRequest.includes(name),
  );
}

/** Returns the fields of a request as the parameters of its job. */
export function parametersOf(operation: string, request: Readonly<Record<string, unknown>>): JobParameters {
  const optionNames = optionNamesOf(operation, request);
  const isOption = ([name]: readonly [string, unknown]) => optionNames.includes(name);
  const { options, named = [] } = Object.groupBy(givenFields(request), (field) =>
    isOption(field) ? "options" : "named",
  );
  // The contract accepts no options of other types.
  return {
    ...Object.fromEntries(named),
    ...(options && { options: Object.fromEntries(options) as JobParameters["options"] }),
  };
}

/** Returns the names of the fields of a request that its contract only accepts as options. */
export function optionNamesOf(operation: string, request: Readonly<Record<string, unknown>>): readonly string[] {
  const names = namesByOperation.get(operation);
  return givenFields(request).flatMap(([name]) => (names?.has(name) ? [] : name));
}

/** Reports whether a name is that of a parameter of such a job. */
export function isParameter(operation: string, name: string): boolean {
  return (
    name === "options" || name.startsWith(viewDefinitionPrefix) || namesByOperation.get(operation)?.has(name) === true
  );
}
