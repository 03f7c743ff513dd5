/** The checks that an `up` removes nothing on which the Ray jobs of the cluster depend. */
import * as pulumi from "@pulumi/pulumi";
import { z } from "zod";
import type { CreationCheck, LiveObjects, UpdateCheck } from "../cluster-provider.ts";
import { annotations, type OwnedObject, stackId, stackLabel } from "../ownership.ts";

/** The parts of a platform on which its Ray jobs depend. */
const Foundations = z.object({
  namespaces: z.array(z.string()),
  serviceAccount: z.string(),
  operator: z.enum(["helm", "gke-addon", "none"]),
});
export type Foundations = Readonly<z.infer<typeof Foundations>>;

/** The annotation of a platform's own namespace with its {@link Foundations}, which the next `up` compares with its own. */
const foundationsAnnotation = "tiltyard.dev/platform";

type Live = Pick<LiveObjects, "list">;

export function foundationsAnnotations(foundations: Foundations): Record<string, string> {
  return { [foundationsAnnotation]: JSON.stringify(foundations) };
}

/**
 * Refuses the update of a platform's own namespace if the platform abandons running Ray jobs. Each change of the
 * foundations is an update of the namespace, and precedes all other changes of the platform.
 */
export function refuseAbandonedJobs(wanted: Foundations): UpdateCheck {
  return (live, _wanted, former) => refuseDepartures(wanted, [foundationsOf(former)], live);
}

/**
 * Refuses the creation of a platform's own namespace under another name if the platform abandons running Ray jobs. The
 * URN in the mark of the namespace is also that of the former one.
 */
export function refuseMoveFromJobs(wanted: Foundations): CreationCheck {
  return async (live, { metadata }) => {
    const urn = metadata.annotations?.[annotations.urn];
    const ofStack = await live.list("v1", "Namespace", `${stackLabel}=${stackId()}`);
    const former = ofStack.filter(
      (each) => each.metadata.name !== metadata.name && each.metadata.annotations?.[annotations.urn] === urn,
    );
    await refuseDepartures(wanted, former.map(foundationsOf), live);
  };
}

/** Refuses to remove the Ray operator of a whole cluster, such as GKE's add-on, while the cluster has Ray jobs. */
export async function refuseJobsAnywhere(live: Live): Promise<void> {
  for (const job of await jobsOf(live)) throw abandoned("the operator leaves the stack", job);
}

async function refuseDepartures(
  wanted: Foundations,
  formers: readonly (Foundations | undefined)[],
  live: Live,
): Promise<void> {
  const changed = formers.filter((former) => former !== undefined && JSON.stringify(former) !== JSON.stringify(wanted));
  if (changed.length === 0) return;
  const jobs = await jobsOf(live);
  for (const former of changed) if (former !== undefined) refuseDeparture(wanted, former, jobs);
}

/**
 * Ray jobs have a finalizer that only the operator removes, so that the deletion of such a namespace never ends, and that
 * of an ended job's Ray cluster never begins. Pods of a deleted account lose their rights while they run.
 */
function refuseDeparture(wanted: Foundations, former: Foundations, jobs: readonly RayObject[]): void {
  for (const job of jobs) {
    const namespace = job.metadata.namespace ?? "";
    if (!former.namespaces.includes(namespace)) continue;
    if (!wanted.namespaces.includes(namespace)) throw abandoned(`the namespace ${namespace} leaves the stack`, job);
    if (former.operator !== "none" && former.operator !== wanted.operator)
      throw abandoned("the operator leaves the stack", job);
    if (former.serviceAccount !== wanted.serviceAccount && !hasEnded(job))
      throw abandoned(`the service account ${former.serviceAccount} leaves the stack`, job);
  }
}

function abandoned(what: string, { kind, metadata: { name, namespace } }: OwnedObject): Error {
  return new Error(
    `${what}, but ${namespace} has the ${kind} ${name}, which depends on it. Cancel the jobs of the namespace, then: ` +
      `kubectl delete rayjobs,rayclusters --all --namespace ${namespace}`,
  );
}

interface RayObject extends OwnedObject {
  readonly status?: { readonly jobDeploymentStatus?: string };
}

function hasEnded({ status }: RayObject): boolean {
  return ["Complete", "Failed"].includes(status?.jobDeploymentStatus ?? "");
}

async function jobsOf(live: Live): Promise<readonly RayObject[]> {
  const lists = await Promise.all(["RayJob", "RayCluster"].map((kind) => live.list("ray.io/v1", kind, "")));
  return lists.flat();
}

function foundationsOf({ metadata }: OwnedObject): Foundations | undefined {
  const text = metadata.annotations?.[foundationsAnnotation];
  if (typeof text !== "string") return undefined;
  const parsed = Foundations.safeParse(JSON.parse(text));
  if (!parsed.success) throw new pulumi.RunError(`${foundationsAnnotation}: ${text} is not the record of a platform`);
  return parsed.data;
}
