import { CatalogError } from "@tiltyard/protocol";
import { automaticJob } from "../../automation/automatic-job.ts";
import { stateOf } from "../../automation/table-state.ts";
import { policyIn, policyNames } from "../../domain/policy.ts";
import { requireTable } from "../../domain/require.ts";
import { listAutomations } from "../../store/automations.ts";
import type { Handler } from "../handler.ts";

export const listPolicyProblems: Handler<"listPolicyProblems"> = async ({ id }, catalog) => {
  const { store } = catalog;
  const table = await requireTable(store.read, id);
  const policy = policyIn(table.properties);
  const problems = [];
  let state: Promise<unknown> | undefined;
  for (const automation of await listAutomations(store.read, table.id)) {
    const { kind, target } = automation;
    if (kind === "backfill" || kind === "refresh") continue;
    const problem = await problemOf(async () => {
      state ??= stateOf(catalog, table);
      await state;
      await automaticJob(catalog, table, automation, policy);
    });
    if (problem !== undefined)
      problems.push({ policy: policyNames[kind], ...(target !== "" && { column: target }), problem });
  }
  return { problems };
};

/** Returns the reason why a job cannot be opened. A table without a version needs none yet. */
async function problemOf(prepare: () => Promise<void>): Promise<string | undefined> {
  try {
    await prepare();
    return undefined;
  } catch (error) {
    if (!(error instanceof CatalogError && error.status < 500)) throw error;
    return error.kind === "TableVersionNotFound" ? undefined : error.message;
  }
}
