import type { Reading } from "./settings.ts";

const ofCluster = { pattern: /^(user|group):\S+$/, form: "user:NAME or group:NAME of the cluster" };
const principalsOf = {
  existing: ofCluster,
  "existing-gke": ofCluster,
  "existing-eks": ofCluster,
  gke: {
    pattern: /^(user|group|serviceAccount|principal|principalSet):\S+$/,
    form: "like user:alice@example.com",
  },
  eks: {
    pattern: /^arn:aws[-a-z]*:iam::\d{12}:(root|(user|role)\/\S+)$/,
    form: "like arn:aws:iam::123456789012:role/NAME",
  },
} as const;

/** Returns the problems of principals that do not have the format of the variant. */
export function problemsOfPrincipals(settings: Reading<"clientPrincipals" | "adminPrincipals" | "teams">): string[] {
  const { variant, clientPrincipals } = settings;
  const { pattern, form } = principalsOf[variant];
  const wrong = (name: string, principals: readonly string[]) =>
    principals.flatMap((principal, index) => (pattern.test(principal) ? [] : [`${name}.${index}: must be ${form}`]));
  const problems = wrong("clientPrincipals", clientPrincipals);
  if ("adminPrincipals" in settings) problems.push(...wrong("adminPrincipals", settings.adminPrincipals));
  settings.teams.forEach((team, index) => {
    problems.push(...wrong(`teams.${index}.clientPrincipals`, team.clientPrincipals));
  });
  if (variant !== "eks") return problems;
  const roles = [{ path: "clientPrincipals", principals: clientPrincipals }].concat(
    settings.teams.map((team, index) => ({
      path: `teams.${index}.clientPrincipals`,
      principals: team.clientPrincipals,
    })),
  );
  for (const { path, principals } of roles)
    if (principals.length === 0)
      problems.push(`${path}: name at least one principal that may assume the client role, ${form}`);
  return problems;
}
