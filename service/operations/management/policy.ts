import { CatalogError, hasKind, type managementContracts, nextTimeAfter, type RequestOf } from "@tiltyard/protocol";
import { automaticJob } from "../../automation/automatic-job.ts";
import { stateOf, type TableState } from "../../automation/table-state.ts";
import {
  applyPolicy,
  noteAutomations,
  policyIn,
  policyNames,
  policyProperties,
  scheduleOf,
} from "../../domain/policy.ts";
import { requireTable } from "../../domain/require.ts";
import { makeAudited } from "../../domain/transaction.ts";
import { indexedColumn } from "../../geneva/backfill.ts";
import { requireRunnerCluster } from "../../geneva/definitions.ts";
import { type Automation, listAutomations, listSourcesOf } from "../../store/automations.ts";
import { setTableProperties } from "../../store/tables.ts";
import type { AuthorizedCaller, Catalog, Handler } from "../handler.ts";

const nothingToRefresh =
  "nothing is refreshed automatically: add a column with auto_backfill, create the view with auto_refresh, or ask the operator for TILTYARD_AUTO_REFRESH=on and add a column with auto_refresh_enabled";

export const putTablePolicy: Handler<"putTablePolicy"> = async (request, catalog, caller) => {
  const { id, auto_compact, auto_build_index = [], auto_clean_up } = request;
  for (const part of [auto_compact, ...auto_build_index, auto_clean_up])
    requireRunnerCluster(catalog.rayClusters, part?.cluster);
  await requireColumns(request, catalog, caller);
  const given = Object.fromEntries(
    policyProperties.flatMap((name) => (request[name] === undefined ? [] : [[name, JSON.stringify(request[name])]])),
  );
  const change = { caller, objects: [id], properties: given };
  return makeAudited(catalog.store, change, async (session) => {
    const table = await requireTable(session, id);
    const others = Object.entries(table.properties).filter(([name]) => !policyProperties.some((each) => each === name));
    const properties = { ...Object.fromEntries(others), ...given };
    await setTableProperties(session, table.id, properties);
    await applyPolicy(session, { ...table, properties }, caller);
    await noteAutomations(session, table.id);
  });
};

/** Validates columns like the requests that open the jobs. A table without a version has no columns yet. */
async function requireColumns(
  { id, auto_build_index = [] }: RequestOf<typeof managementContracts.putTablePolicy>,
  { rows }: Catalog,
  caller: AuthorizedCaller,
): Promise<void> {
  const columns = new Set<string>();
  try {
    for (const { column, index_type } of auto_build_index)
      columns.add(await indexedColumn(rows, { id, column, index_type, caller }));
  } catch (error) {
    if (hasKind(error, "TableVersionNotFound")) return;
    throw error;
  }
  if (columns.size < auto_build_index.length)
    throw new CatalogError("InvalidInput", "auto_build_index: must have one policy for each column");
}

export const describeTablePolicy: Handler<"describeTablePolicy"> = async ({ id }, catalog) => {
  const { store } = catalog;
  const table = await requireTable(store.read, id);
  const policy = policyIn(table.properties);
  const problems = [];
  const scheduled = [];
  let state: Promise<TableState> | undefined;
  const automations = await listAutomations(store.read, table.id);
  if (policy.auto_refresh !== undefined) {
    const part = { policy: "auto_refresh" } as const;
    scheduled.push({ ...part, next_at_millis: nextTimeAfter(policy.auto_refresh.schedule, store.read.time()) });
    const problem = await problemOf(async () => {
      state ??= stateOf(catalog, table);
      const { refreshIntervals } = await state;
      const isColumn = ({ kind, target }: Automation) =>
        kind === "backfill" && (catalog.autoRefresh || !refreshIntervals.has(target));
      if (!automations.some(isColumn) && (await listSourcesOf(store.read, table.id)).length === 0)
        throw new CatalogError("InvalidInput", nothingToRefresh);
    });
    if (problem !== undefined) problems.push({ ...part, problem });
  }
  for (const automation of automations) {
    const { kind, target } = automation;
    if (kind === "backfill" || kind === "refresh") continue;
    const part = { policy: policyNames[kind], ...(target !== "" && { column: target }) };
    const schedule = scheduleOf(automation, policy);
    if (schedule !== undefined) scheduled.push({ ...part, next_at_millis: nextTimeAfter(schedule, store.read.time()) });
    const problem = await problemOf(async () => {
      state ??= stateOf(catalog, table);
      await state;
      await automaticJob(catalog, table, automation, policy);
    });
    if (problem !== undefined) problems.push({ ...part, problem });
  }
  return { policy, problems, scheduled };
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
