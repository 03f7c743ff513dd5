import { platformDefaults } from "@tiltyard/platform";
import { reservedLabel } from "../node-pools.ts";
import type { Reading } from "./settings.ts";

/** Returns the problems of names that clouds would reject, or that labels could not distinguish. */
export function problemsOfNames(
  settings: Reading<"clusterName" | "clientRole" | "teams" | "labelDomain" | "labelKeys">,
): string[] {
  if (settings.variant === "existing" || settings.variant === "existing-eks") return [];
  const { clusterName, labelDomain, labelKeys } = settings;
  const problems: string[] = [];
  if (settings.variant !== "eks" && !/^[a-z].{0,39}$/.test(clusterName))
    problems.push("clusterName: must begin with a letter and have at most 40 characters on gke");
  if (settings.variant === "existing-gke") return problems;
  if (reservedLabel.test(`${labelDomain}/`))
    problems.push("labelDomain: must not be of kubernetes.io or k8s.io, whose labels clouds set themselves");
  const keys = Object.entries(labelKeys);
  for (const [role, key] of keys) {
    const [first = role] = keys.find(([, its]) => its === key) ?? [];
    if (first !== role) problems.push(`labelKeys.${role}: is that of ${first}: pods select nodes by it`);
  }
  if (settings.variant === "eks") {
    if (!/^[a-z]/.test(clusterName) || clusterName.includes("--"))
      problems.push("clusterName: must begin with a letter and have no two dashes in a row on eks");
    problems.push(...problemsOfRoles(settings));
  }
  return problems;
}

type OnEks = Extract<Reading<"clusterName" | "clientRole" | "teams">, { readonly variant: "eks" }>;

const roleNameMax = 64;

function problemsOfRoles(settings: OnEks): string[] {
  const role = clientRoleOf(settings);
  const names = [role, ...settings.teams.map(({ name }) => `${role}-${name}`)];
  const tooLong = names.filter((name) => name.length > roleNameMax);
  if (tooLong.length === 0) return [];
  return [`clientRole: roles of IAM have at most ${roleNameMax} characters: ${tooLong.join(", ")}`];
}

/**
 * Returns the name of the client role: Geneva's own on a cluster with the default name, and a unique one of the account
 * on others.
 */
export function clientRoleOf({ clientRole, clusterName }: Pick<OnEks, "clientRole" | "clusterName">): string {
  if (clientRole !== undefined) return clientRole;
  const { clientRole: geneva } = platformDefaults;
  return clusterName === platformDefaults.clusterName ? geneva : `${geneva}-${clusterName}`;
}
