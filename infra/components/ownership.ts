import * as pulumi from "@pulumi/pulumi";

/** The label of every Kubernetes object of a stack. Its value names the stack. */
export const stackLabel = "tiltyard.dev/stack";

export const annotations = {
  /** The resource of the stack that the object is. */
  urn: "tiltyard.dev/urn",
  /** The id of the Pulumi provider that created the object: equal only within one state of a stack. */
  deployment: "tiltyard.dev/deployment",
} as const;

/** An object as the API server or the program has it. */
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

/** Kinds that people create for a stack, and that a stack leaves behind on purpose. */
const adoptedKinds: readonly string[] = ["Namespace", "PersistentVolumeClaim"];

/**
 * Decides whether a stack may take over an object that exists. It may take over
 *
 * - an object that the same state of the stack created in an `up` that was interrupted: the state does not know of it;
 * - an object that the stack has retained, when a deletion of the resource would retain it again;
 * - a namespace or a claim without an owner.
 *
 * Anything else could be deleted together with the stack although others use it.
 *
 * @param wanted The object as the stack would create it, with its marks.
 * @param isRetained Whether the stack leaves the object behind when it deletes the resource.
 * @returns The reason for a refusal; undefined when the stack may take it over.
 */
export function refusalOf(wanted: OwnedObject, live: OwnedObject, isRetained: boolean): string | undefined {
  const what = describe(live);
  if (live.metadata.deletionTimestamp !== undefined) return `${what} is still being deleted. Try again when it is gone`;
  const owner = live.metadata.labels?.[stackLabel];
  if (owner === undefined)
    return adoptedKinds.includes(live.kind)
      ? undefined
      : `${what} exists, and no stack has created it. Delete it, or choose another name. ${command("delete", live)}`;
  if (owner !== wanted.metadata.labels?.[stackLabel])
    return (
      `${what} belongs to the stack ${owner}. Stacks on one cluster need different settings namespace and ` +
      `serviceAccount. If that stack is gone: ${command("label", live, `${stackLabel}-`)}`
    );
  if (isRetained || (isSame(wanted, live, annotations.deployment) && isSame(wanted, live, annotations.urn)))
    return undefined;
  return (
    `${what} belongs to another deployment or another resource of the stack ${owner}. ` +
    `If nothing uses it: ${command("delete", live)}`
  );
}

function isSame(one: OwnedObject, other: OwnedObject, annotation: string): boolean {
  const value = one.metadata.annotations?.[annotation];
  return typeof value === "string" && value === other.metadata.annotations?.[annotation];
}

function describe({ kind, metadata: { name, namespace } }: OwnedObject): string {
  return `the ${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
}

function command(verb: string, { kind, metadata: { name, namespace } }: OwnedObject, ...more: readonly string[]) {
  const where = namespace === undefined ? [] : ["--namespace", namespace];
  return ["kubectl", verb, kind.toLowerCase(), name, ...more, ...where].join(" ");
}

/** `ORGANIZATION.PROJECT.STACK`, as far as a label holds it. */
export function stackId(): string {
  const id = [pulumi.getOrganization(), pulumi.getProject(), pulumi.getStack()].join(".");
  return id.slice(0, 63).replace(/[^A-Za-z0-9]+$/, "");
}
