import { CatalogError, documentationPage, jsonOrUndefined, parsing, TablePolicy } from "@tiltyard/protocol";
import { z } from "zod";
import {
  type Automation,
  deleteAutomation,
  listAutomations,
  listSourcesOf,
  putAutomation,
} from "../store/automations.ts";
import type { Session } from "../store/store.ts";
import type { TableRecord } from "../store/tables.ts";
import { noteTask } from "../store/tasks.ts";
import type { Caller } from "./transaction.ts";

const Policy = z.object(TablePolicy);
export type Policy = z.infer<typeof Policy>;
type PolicyName = keyof typeof TablePolicy;

/** The properties of a table that contain its policy, each as JSON. */
export const policyProperties = Object.keys(TablePolicy) as PolicyName[];
/** The initial state, in which existing rows may open a job. */
const nothingSeen = { version: 0, fragment: -1 } as const;
/** The parts of a policy by the kinds of their automations. */
export const policyNames = {
  compact: "auto_compact",
  build_index: "auto_build_index",
  clean_up: "auto_clean_up",
} as const satisfies Partial<Record<Automation["kind"], PolicyName>>;

/** Returns the task that opens the jobs for new rows of a table. */
export function automationOf(tableId: number) {
  return { kind: "automate", subject: String(tableId) } as const;
}

/** Opens the jobs that are due, of a table and of the sources from which it is refreshed if it is a view. */
export async function noteAutomations(session: Session, tableId: number): Promise<void> {
  for (const each of [tableId, ...(await listSourcesOf(session, tableId))]) await noteTask(session, automationOf(each));
}

/** Returns the policy of a table. @throws CatalogError InvalidInput if a property is not a valid policy. */
export function policyIn(properties: TableRecord["properties"]): Policy {
  const given: Partial<Record<PolicyName, unknown>> = {};
  for (const name of policyProperties) {
    if (properties[name] === undefined) continue;
    given[name] = jsonOrUndefined(properties[name]);
    const problem = `properties.${name}: is not JSON. ${documentationPage("tables")} describes its fields`;
    if (given[name] === undefined) throw new CatalogError("InvalidInput", problem);
  }
  const parsed = Policy.safeParse(given, parsing);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new CatalogError("InvalidInput", `properties.${issue?.path.join(".")}: ${issue?.message}`);
}

export function indexPolicyOf({ auto_build_index }: Policy, target: string) {
  return auto_build_index?.find(({ column }) => column === target);
}

/** Returns the times of the jobs of an automation by the policy of the table, or of the refreshed view. */
export function scheduleOf({ kind, target }: Pick<Automation, "kind" | "target">, policy: Policy) {
  if (kind === "build_index") return indexPolicyOf(policy, target)?.schedule;
  return policy[kind === "compact" || kind === "clean_up" ? policyNames[kind] : "auto_refresh"]?.schedule;
}

/** Registers the automations of a table's policy and deletes all others. @throws CatalogError InvalidInput */
export async function applyPolicy(session: Session, table: TableRecord, { principal }: Pick<Caller, "principal">) {
  const { auto_compact, auto_build_index = [], auto_clean_up } = policyIn(table.properties);
  const wanted = [
    ...(auto_compact === undefined ? [] : [{ kind: "compact", target: "" } as const]),
    ...auto_build_index.map(({ column }) => ({ kind: "build_index", target: column }) as const),
    ...(auto_clean_up === undefined ? [] : [{ kind: "clean_up", target: "" } as const]),
  ];
  const present = table.isAutomated ? await listAutomations(session, table.id) : [];
  for (const each of present)
    if (each.kind in policyNames && !wanted.some(({ kind, target }) => each.kind === kind && each.target === target))
      await deleteAutomation(session, each);
  for (const each of wanted)
    await putAutomation(session, { tableId: table.id, ...each, principal: principal.name }, nothingSeen);
  if (wanted.length === 0) return table;
  await noteTask(session, automationOf(table.id));
  return { ...table, isAutomated: true };
}
