import { CatalogError, formatIdentifier, functionErrorsMax, type Identifier, isOpen } from "@tiltyard/protocol";
import { mayUseSecret } from "../../auth/job-key.ts";
import { requireJob } from "../../domain/require.ts";
import { secretsOf } from "../../functions/binding.ts";
import { decryptSecret } from "../../functions/secret-keys.ts";
import {
  findBinding,
  insertErrors,
  listFragments,
  putFailures,
  putFragments,
  readContent,
} from "../../store/functions.ts";
import type { JobRecord } from "../../store/jobs.ts";
import type { Session } from "../../store/store.ts";
import type { Handler } from "../handler.ts";
import { requireSecret } from "../remote/secret.ts";
import { alterAttempt, requireAttempt } from "./job-attempt.ts";

export const describeJobFunction: Handler<"describeJobFunction"> = async ({ id }, { store }) => {
  const binding = await requireBinding(store.read, await requireJob(store.read, id), id);
  const { artifact, signature, runtime } = binding.definition;
  const fragments = await listFragments(store.read, binding.id);
  return {
    function: {
      name: binding.functionName,
      version: binding.functionVersion,
      binding: binding.id,
      kind: artifact.kind,
      entrypoint: artifact.entrypoint,
      content: await readContent(store.read, binding.functionId),
      python_version: runtime.python_version,
      packages: runtime.packages ?? [],
      env: runtime.env ?? {},
      gpu: runtime.gpu ?? false,
      secrets: [...secretsOf(binding.definition).keys()],
      inputs: binding.inputs,
      input_types: signature.inputs,
      output: signature.output,
      outputs: binding.outputs,
      initialization: binding.initialization,
      fragments: fragments.map(({ fragmentId: fragment_id, signature, rows }) => ({ fragment_id, signature, rows })),
    },
  };
};

/** Returns the values of secrets only to the process of the latest attempt, which has started and has its key. */
export const readJobSecrets: Handler<"readJobSecrets"> = async (request, { store, secretKeys }, { principal }) => {
  const { id, attempt, claim } = request;
  const job = await requireAttempt(store.read, request);
  if (principal.attempt?.id !== job.id || principal.attempt.attempt !== attempt)
    throw new CatalogError("PermissionDenied", `only the key of attempt ${attempt} may read the secrets of its job`);
  if (!isOpen(job) || job.claim !== claim)
    throw new CatalogError("ConcurrentModification", `no process with this claim runs attempt ${attempt}`);
  const { definition, definer } = await requireBinding(store.read, job, id);
  const values: [variable: string, value: string][] = [];
  for (const [variable, secret] of secretsOf(definition)) {
    if (!(await mayUseSecret(store.read, job, definer, secret)))
      throw new CatalogError(
        "PermissionDenied",
        `${definer}, which added the column, is no longer a writer of the namespace of the secret ${formatIdentifier(secret)}: let a writer of that namespace open the job`,
      );
    values.push([variable, decryptSecret(secretKeys, await requireSecret(store.read, secret))]);
  }
  return { secrets: Object.fromEntries(values) };
};

/** Records what the latest attempt at a job has computed. A repeated request changes nothing. */
export const recordJobFunction: Handler<"recordJobFunction"> = async (request, { store }) => {
  const { id, version, fragments, removed = [], errors = [], failed = [] } = request;
  await alterAttempt(store, request, async (session, job) => {
    const { id: bindingId, tableId, functionName, functionVersion } = await requireBinding(session, job, id);
    const latest = new Map(
      fragments.map(({ fragment_id: fragmentId, ...each }) => [fragmentId, { fragmentId, ...each }]),
    );
    await putFragments(session, bindingId, [...latest.values()], removed);
    const { column = "" } = job;
    const common = { jobId: job.id, tableId, column, functionName, functionVersion, tableVersion: version };
    const records = errors.map(({ fragment_id, row_offset, error_type, error_message }) => ({
      ...common,
      ...{ fragmentId: fragment_id, rowOffset: row_offset ?? -1, errorType: error_type, errorMessage: error_message },
      createdAtMillis: Date.now(),
    }));
    await insertErrors(session, records, job.id, functionErrorsMax);
    const failures = new Map(
      failed.map(({ fragment_id: fragmentId, rows }) => [
        fragmentId,
        { jobId: job.id, fragmentId, tableId, column, rows },
      ]),
    );
    await putFailures(session, [...failures.values()]);
    return job;
  });
  return {};
};

/** Returns the binding that a job evaluates. @throws CatalogError InvalidInput, FunctionNotFound */
async function requireBinding(session: Session, { parameters }: JobRecord, id: Identifier) {
  const { function_binding: binding } = parameters;
  if (binding === undefined)
    throw new CatalogError("InvalidInput", `id: the job ${formatIdentifier(id)} evaluates no Function`);
  const found = await findBinding(session, binding);
  if (found !== undefined) return found;
  throw new CatalogError(
    "FunctionNotFound",
    `the column of the job ${formatIdentifier(id)}, or its function, was dropped. Cancel the job`,
  );
}
