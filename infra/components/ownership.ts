import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import * as pulumi from "@pulumi/pulumi";

/** The label of every Kubernetes object of a stack. Its value names the stack. */
export const stackLabel = "tiltyard.dev/stack";

/** A part of a stack, by which its objects are labelled. */
export type StackComponent = "catalog" | "cluster" | "ray" | "runner";

const { version }: { readonly version: string } = JSON.parse(
  readFileSync(new URL("../package.json", import.meta.url), "utf8"),
);

/**
 * Returns the labels that tools expect of the objects of a stack. Objects that a person may have created keep their own.
 * No selector has them, because the version changes. Objects that a selector finds replace the name.
 * https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/
 */
export function recommendedLabels(kind: string, component: StackComponent): Readonly<Record<string, string>> {
  if (adoptedKinds.includes(kind)) return {};
  return {
    "app.kubernetes.io/name": `tiltyard-${component}`,
    "app.kubernetes.io/instance": stackId(),
    "app.kubernetes.io/component": component,
    "app.kubernetes.io/version": version,
    "app.kubernetes.io/part-of": "tiltyard",
    "app.kubernetes.io/managed-by": "pulumi",
  };
}

export const annotations = {
  /** The resource of the stack that corresponds to the object. */
  urn: "tiltyard.dev/urn",
  /** The id of the Pulumi provider that created the object. It is equal only within one state of a stack. */
  deployment: "tiltyard.dev/deployment",
  /** The id of a cluster outside the stack: the UID of its namespace `kube-system`. */
  cluster: "tiltyard.dev/cluster",
} as const;

/**
 * The annotation by which an `up` takes over fields that another field manager has set. The provider takes over only those
 * that the program sets, and fails with a conflict without it.
 */
export const forcedApply = { "pulumi.com/patchForce": "true" } as const;

/**
 * Returns the annotations by which an `up` restores what a person changed. It overrides nothing on a namespace or a claim,
 * which may be a person's.
 */
export function restoringAnnotations(kind: string): Readonly<Record<string, string>> {
  return adoptedKinds.includes(kind) ? {} : forcedApply;
}

/** An object of the API server or of the program. */
export interface OwnedObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, unknown>>;
    readonly annotations?: Readonly<Record<string, unknown>>;
    readonly deletionTimestamp?: unknown;
  };
}

/** The kinds that users create for a stack, or that a stack retains on purpose. */
const adoptedKinds: readonly string[] = ["Namespace", "PersistentVolumeClaim"];

/**
 * Decides whether a stack may adopt an existing object. It may adopt
 *
 * - an object that an interrupted `up` of the same state created, which the state does not contain;
 * - an object that the stack has retained, if the deletion of the resource would retain it again;
 * - a namespace or a claim without an owner.
 *
 * Any other object could be deleted together with the stack although others use it.
 *
 * @param wanted The object as the stack would create it, with its marks.
 * @param isRetained Reports whether the stack retains the object when it deletes the resource.
 * @returns The reason for a rejection; undefined if the stack may adopt the object.
 */
export function refusalOf(wanted: OwnedObject, live: OwnedObject, isRetained: boolean): string | undefined {
  const what = describe(live);
  if (live.metadata.deletionTimestamp !== undefined) return `${what} is still being deleted. Retry after its deletion`;
  const owner = live.metadata.labels?.[stackLabel];
  if (owner === undefined)
    return adoptedKinds.includes(live.kind)
      ? undefined
      : `${what} exists, and no stack has created it. Delete it, or choose another name. ${command("delete", live)}`;
  if (owner !== wanted.metadata.labels?.[stackLabel])
    return (
      `${what} belongs to the stack ${owner}. Stacks on one cluster need different settings namespace and ` +
      `serviceAccount. If that stack no longer exists: ${command("label", live, `${stackLabel}-`)}`
    );
  if (isRetained || (isSame(wanted, live, annotations.deployment) && isSame(wanted, live, annotations.urn)))
    return undefined;
  return (
    `${what} belongs to another deployment or another resource of the stack ${owner}. ` +
    `If nothing uses it: ${command("delete", live)}`
  );
}

/**
 * Looks for another deployment of the same stack.
 *
 * @param wanted An object that the stack would create, with its marks.
 * @param live Objects with the label of the stack that no deployment leaves behind.
 * @returns The reason for a refusal; undefined when all of them are of this deployment.
 */
export function otherDeployment(wanted: OwnedObject, live: readonly OwnedObject[]): string | undefined {
  const other = live.find((each) => !isSame(wanted, each, annotations.deployment));
  if (other === undefined) return undefined;
  return (
    `${describe(other)} belongs to another deployment of the stack ${other.metadata.labels?.[stackLabel]}, which the ` +
    "state of this stack does not know. Use the state with which that one was created, or another stack name with " +
    `another namespace and serviceAccount. If nothing uses it: ${command("delete", other)}`
  );
}

/**
 * Compares the clusters of an object before and after an update.
 *
 * @returns The reason for a refusal; undefined unless they are known and differ.
 */
export function otherCluster(wanted: OwnedObject, former: OwnedObject): string | undefined {
  const [its, old] = [wanted, former].map(({ metadata }) => metadata.annotations?.[annotations.cluster]);
  if (typeof its !== "string" || typeof old !== "string" || its === old) return undefined;
  return (
    `the kubeconfig reaches another cluster, and not that of ${describe(former)}: the UID of its namespace kube-system is ` +
    `${its}, not ${old}. Set kubeconfig and context to those of the former cluster. If it does not exist any more, ` +
    "PULUMI_K8S_DELETE_UNREACHABLE=true pulumi refresh removes its objects from the state"
  );
}

function isSame(one: OwnedObject, other: OwnedObject, annotation: string): boolean {
  const value = one.metadata.annotations?.[annotation];
  return typeof value === "string" && value === other.metadata.annotations?.[annotation];
}

function describe({ kind, metadata: { name, namespace } }: OwnedObject): string {
  return `the ${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
}

/** Returns the command of kubectl that changes an object. */
export function command(
  verb: string,
  { kind, metadata: { name, namespace } }: OwnedObject,
  ...more: readonly string[]
) {
  const where = namespace === undefined ? [] : ["--namespace", namespace];
  return ["kubectl", verb, kind.toLowerCase(), name, ...more, ...where].join(" ");
}

/**
 * Returns `ORGANIZATION.PROJECT.STACK`. A hash replaces the end of an id that is no valid label, because two stacks with
 * one label would adopt each other's volumes.
 */
export function stackId(): string {
  const id = [pulumi.getOrganization(), pulumi.getProject(), pulumi.getStack()].join(".");
  if (id.length <= 63 && /[A-Za-z0-9]$/.test(id)) return id;
  return `${id.slice(0, 54)}.${createHash("sha256").update(id).digest("hex").slice(0, 8)}`;
}
