import { z } from "zod";
import { versions } from "../versions.ts";
import { annotationMap, ownNamespace, quantity, version } from "./setting-types.ts";

/** The limit of the total requests of a namespace's pods; with Kueue, the capacity of its queue. */
export const Quota = z.strictObject({
  cpu: quantity,
  memory: quantity,
  gpus: z.int().nonnegative().default(0),
});
export type QuotaSettings = z.output<typeof Quota>;

const team = {
  /**
   * The name of the team and of its folder in the bucket, where the catalog stores the tables of the namespace with
   * this name.
   */
  name: z
    .string()
    .regex(/^[a-z]([-a-z0-9]{0,18}[a-z0-9])?$/, "must be at most 20 lower-case letters, digits and dashes"),
  /** The namespace of its Ray clusters; that of the stack with the team's name as suffix when absent. */
  namespace: ownNamespace.optional(),
  /** The principals that may create Ray clusters there, in the format of those of the stack. */
  clientPrincipals: z.array(z.string()).default([]),
  quota: Quota.optional(),
};

export const Teams = z.array(z.strictObject(team)).default([]);
/** The teams of a cluster whose identities the stack does not create. */
export const TeamsOnExisting = z
  .array(z.strictObject({ ...team, serviceAccountAnnotations: annotationMap.default({}) }))
  .default([]);

/** A team with all its names. */
export interface Team {
  readonly name: string;
  readonly namespace: string;
  readonly clientPrincipals: readonly string[];
  readonly quota?: QuotaSettings | undefined;
  readonly serviceAccountAnnotations?: Readonly<Record<string, string>>;
}

/** The suffix of the resources for the clients of a namespace. No team may have the name of another one with it. */
export const clientSuffix = "-client";

export function teamNamespace(
  namespace: string,
  team: { readonly name: string; readonly namespace?: string | undefined },
) {
  return team.namespace ?? `${namespace}-${team.name}`;
}

/** The queues of Ray jobs: of a Kueue that the stack installs, or of an existing one. */
export const Kueue = z.discriminatedUnion("source", [
  z.strictObject({ source: z.literal("helm"), version: version.default(versions.kueue) }),
  z.strictObject({ source: z.literal("none") }),
]);
export type KueueSettings = z.output<typeof Kueue>;
