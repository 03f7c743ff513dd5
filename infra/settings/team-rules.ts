import { catalogNamespace } from "./catalog-settings.ts";
import type { Reading } from "./settings.ts";
import { clientSuffix, teamNamespace } from "./team-settings.ts";

/** Returns the problems of teams, such as names or namespaces that are not unique and queues without a quota. */
export function problemsOfTeams({
  variant,
  namespace,
  catalog,
  teams,
  quota,
  kueue,
  operator,
}: Reading<"teams" | "namespace" | "catalog" | "quota" | "kueue" | "operator">): string[] {
  const problems: string[] = [];
  const ofOperator = operator.source === "none" && operator.namespace !== undefined ? [operator.namespace] : [];
  const namespaces = [namespace, catalogNamespace(namespace, catalog), ...ofOperator];
  teams.forEach((team, index) => {
    const its = teamNamespace(namespace, team);
    if (teams.findIndex(({ name }) => name === team.name) !== index)
      problems.push(`teams.${index}.name: is the name of another team: ${team.name}`);
    else if (teams.some(({ name }) => team.name === `${name}${clientSuffix}`))
      problems.push(`teams.${index}.name: must not be that of another team with ${clientSuffix}: ${team.name}`);
    else if (namespaces.includes(its)) problems.push(`teams.${index}.namespace: is already in use: ${its}`);
    if (its.length > 63) problems.push(`teams.${index}.namespace: must have at most 63 characters: ${its}`);
    namespaces.push(its);
    if (kueue !== undefined && team.quota === undefined)
      problems.push(`teams.${index}.quota: is required with kueue: its queue lets in as much`);
  });
  if (kueue !== undefined && quota === undefined)
    problems.push("quota: is required with kueue: the queue of the namespace lets in as much");
  // The add-on of an existing GKE cluster runs in no namespace.
  if (teams.length > 0 && variant !== "existing-gke" && operator.source === "none" && operator.namespace === undefined)
    problems.push(
      "operator.namespace: is required with teams, because the existing operator must reach their Ray clusters",
    );
  return problems;
}
