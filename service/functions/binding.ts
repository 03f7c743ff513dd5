import { randomUUID } from "node:crypto";
import { columnsAsStream, findField } from "@tiltyard/lance-worker";
import {
  arrowTypeText,
  characters,
  type FunctionColumns,
  type FunctionDefinition,
  type FunctionField,
  type FunctionResult,
  formatIdentifier,
  functionBindingKey,
  type Identifier,
  inDatabase,
  type JsonArrowDataType,
  type JsonArrowSchema,
  ownValue,
  parseFunctionType,
  wholeResult,
} from "@tiltyard/protocol";
import type { Principal } from "../auth/authenticator.ts";
import { authorize } from "../auth/authorize.ts";
import { accessToSecret } from "../auth/job-key.ts";
import { jsonOf } from "../domain/request-fields.ts";
import { type FunctionRecord, findFunction, findFunctionBy, insertBinding } from "../store/functions.ts";
import { findSecret } from "../store/secrets.ts";
import type { Session, Store } from "../store/store.ts";
import type { TableRecord } from "../store/tables.ts";
import { requireReady } from "./bake.ts";
import { fieldsOfOutput, invalid } from "./registration.ts";

interface TableColumns {
  readonly schema: JsonArrowSchema;
  /** The metadata of the new columns that determines their automatic refreshes. */
  readonly refresh: Readonly<Record<string, string>>;
}

type Application = FunctionColumns["application"];

/**
 * Prepares the columns that a Function computes.
 *
 * @param database The namespace of LanceDB's client, which contains that of the Function.
 * @param definer The caller, which must be a writer of the namespaces of the secrets.
 * @throws CatalogError PermissionDenied; otherwise InvalidInput, because LanceDB's client replaces the text of all other
 * errors.
 */
export async function bindFunction(
  store: Store,
  { application, outputs: requested }: FunctionColumns,
  { schema: { fields }, refresh }: TableColumns,
  database: Identifier | undefined,
  definer: Principal,
) {
  const { function: reference } = application;
  const identifier = inDatabase({ database }, [...(reference.namespace_path ?? []), reference.name]);
  const name = `the function ${formatIdentifier(identifier)}`;
  const bound = await findFunction(store.read, identifier, Number(reference.version));
  if (bound === undefined) throw invalid(`function: ${name} has no version ${reference.version}`);
  if (bound.id !== reference.object_id)
    throw invalid(`function: version ${reference.version} of ${name} was replaced. Read it again by get_function`);
  await requireReady(store.read, bound);
  for (const secret of secretsOf(bound.definition).values()) {
    authorize(definer, [accessToSecret(secret)]);
    if ((await findSecret(store.read, secret)) === undefined)
      throw invalid(`function: the secret ${formatIdentifier(secret)} of ${name} does not exist. Create it first`);
  }
  const inputs = inputsOf(application, bound, fields);
  const outputs = outputsOf(requested, bound, fields);
  const initialization = initializationOf(application, bound);
  const stored = {
    ...{ inputs, initialization },
    outputs: outputs.map(({ result, column }) => ({ result, column })),
  };
  // Each change of the table reads all of this.
  const { length } = jsonOf(stored, "initialization");
  if (length > characters.text)
    throw invalid(
      `inputs, outputs, initialization: have ${length} characters together, and at most ${characters.text} are allowed`,
    );
  const id = randomUUID();
  const columns = outputs.map(({ column, type }, index) => {
    // One job computes all columns of a binding.
    const metadata = { [functionBindingKey]: id, ...(index === 0 && refresh) };
    // Rows without a computed value are null.
    return { name: column, type, nullable: true, metadata };
  });
  return {
    /** An Arrow stream with the columns and without rows. */
    columns: columnsAsStream(columns),
    /** The column that requests for jobs name. */
    first: outputs[0]?.column ?? "",
    /** Inserts the binding in the database transaction of the version with the columns. */
    insert: async (session: Session, { id: tableId }: TableRecord): Promise<void> => {
      const present = await findFunctionBy(session, { id: bound.id });
      if (present === undefined) throw invalid(`function: ${name} was dropped`);
      await insertBinding(session, { id, tableId, functionId: bound.id, ...stored, definer: definer.name });
    },
  };
}

/** Returns the secrets of a Function by their environment variables. */
export function secretsOf({ secret_bindings = [] }: FunctionDefinition): ReadonlyMap<string, Identifier> {
  return new Map(
    secret_bindings.map(({ variable, secret_ref: { name, namespace_path = [] } }) => [
      variable,
      [...namespace_path, name],
    ]),
  );
}

/** Returns the column of each parameter. */
function inputsOf({ inputs }: Application, { definition }: FunctionRecord, fields: JsonArrowSchema["fields"]) {
  const parameters = definition.signature.inputs;
  const unknown = inputs.find(({ parameter }) => parameters.every(({ name }) => name !== parameter));
  if (unknown !== undefined) throw invalid(`inputs: the function has no parameter ${unknown.parameter}`);
  return parameters.map(({ name, arrow_type }) => {
    const given = inputs.filter(({ parameter }) => parameter === name);
    const [reference] = given;
    if (given.length !== 1 || reference?.kind !== "column")
      throw invalid(`inputs: the parameter ${name} needs one column, such as col("text")`);
    const { path } = reference.value;
    const found = findField(fields, path);
    if (found === undefined) throw invalid(`inputs: the table has no column ${path} for the parameter ${name}`);
    const { type } = found.field;
    const needed = parseFunctionType(arrow_type);
    if (needed === undefined || !isSame(type, needed))
      throw invalid(
        `inputs: the column ${path} has the type ${arrowTypeText(type)}, and the parameter ${name} needs ${arrow_type}`,
      );
    return { parameter: name, path };
  });
}

/** Compares types without the names of items and without whether values may be null. */
function isSame(one: JsonArrowDataType, other: JsonArrowDataType): boolean {
  const [fields = [], others = []] = [one.fields, other.fields];
  return (
    one.type === other.type &&
    one.length === other.length &&
    fields.length === others.length &&
    fields.every(({ name, type }, index) => {
      const match = others[index];
      return match !== undefined && isSame(type, match.type) && (one.type !== "struct" || name === match.name);
    })
  );
}

/** Returns the columns of the result with their types: the whole result in one column, or a column for each field. */
function outputsOf(
  requested: FunctionColumns["outputs"],
  { definition }: FunctionRecord,
  fields: JsonArrowSchema["fields"],
): readonly (FunctionResult & { readonly type: JsonArrowDataType })[] {
  const { output } = definition.signature;
  const typeOf = ({ arrow_type }: Pick<FunctionField, "arrow_type">) =>
    parseFunctionType(arrow_type) ?? { type: "null" };
  const results = fieldsOfOutput(output).map((field) => ({ name: field.name, type: typeOf(field), nullable: true }));
  const whole = output.kind === "scalar" ? typeOf(output) : { type: "struct", fields: results };
  const isWhole = requested.length === 1 && requested[0]?.result_field === wholeResult;
  const wanted = isWhole ? [{ name: wholeResult, type: whole }] : results;
  const outputs = wanted.flatMap(({ name: result, type }) =>
    requested
      .filter(({ result_field }) => result_field === result)
      .map(({ output_name }) => ({ result, column: output_name, type })),
  );
  const isComplete = wanted.every(({ name }) => outputs.filter(({ result }) => result === name).length === 1);
  if (!isComplete || outputs.length < requested.length)
    throw invalid(
      `outputs: must have one column for each field of the result: ${wanted.map(({ name }) => name).join(", ")}`,
    );
  const names = new Set(fields.map(({ name }) => name));
  const taken = outputs.find(({ column }) => names.size === names.add(column).size);
  if (taken !== undefined) throw invalid(`outputs: the column ${taken.column} exists already`);
  return outputs;
}

/** Returns the arguments of the constructor of a class. The job checks their types. */
function initializationOf({ initialization = {} }: Application, { definition }: FunctionRecord) {
  const { initialization: known = [] } = definition.signature;
  const unknown = Object.keys(initialization).find((name) => known.every((field) => field.name !== name));
  if (unknown !== undefined) throw invalid(`initialization: the function has no argument ${unknown}`);
  const missing = known.find(({ name, nullable }) => !nullable && !Object.hasOwn(initialization, name));
  if (missing !== undefined) throw invalid(`initialization: the argument ${missing.name} is missing`);
  const rounded = known.find(
    ({ name, arrow_type }) => /int/.test(arrow_type) && isRounded(ownValue(initialization, name)),
  );
  if (rounded !== undefined)
    throw invalid(
      `initialization: the argument ${rounded.name} has an integer beyond 2^53-1, which JSON would round. Declare it as utf8, and convert it in the class`,
    );
  return initialization;
}

/** Reports whether a value has an integer that its JSON text may have contained with other digits. */
function isRounded(value: unknown): boolean {
  if (typeof value === "number") return Number.isInteger(value) && !Number.isSafeInteger(value);
  return typeof value === "object" && value !== null && Object.values(value).some(isRounded);
}
