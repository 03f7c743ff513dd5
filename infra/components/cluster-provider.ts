import { AsyncLocalStorage } from "node:async_hooks";
import { ApiException, KubeConfig, KubernetesObjectApi, PatchStrategy } from "@kubernetes/client-node";
import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { withRequestTimeout } from "@tiltyard/platform";
import { messageOf } from "@tiltyard/protocol";
import {
  annotations,
  type OwnedObject,
  otherCluster,
  otherDeployment,
  recommendedLabels,
  refusalOf,
  restoringAnnotations,
  type StackComponent,
  stackId,
  stackLabel,
} from "./ownership.ts";

export interface ClusterProviderArgs {
  /** The content of a kubeconfig; the default kubeconfig of the user when absent. */
  readonly kubeconfig?: string | pulumi.Output<string> | undefined;
  readonly context?: string | undefined;
  /** The id of a cluster of the stack. A provider with another id replaces all objects. */
  readonly clusterIdentifier?: pulumi.Input<string>;
  /** The deployment of another provider of the program, whose objects this one may use; one of its own when absent. */
  readonly deployment?: pulumi.Output<string> | undefined;
}

// biome-ignore lint/suspicious/noExplicitAny: the metadata of any kind, of which parts may be outputs.
type Metadata = Readonly<Record<string, any>>;

/** Reads objects of the cluster. Missing objects and unknown kinds are not errors. */
export class LiveObjects {
  readonly #api: KubernetesObjectApi;

  constructor(config: KubeConfig) {
    this.#api = KubernetesObjectApi.makeApiClient(withRequestTimeout(config));
  }

  async find(apiVersion: string, kind: string, name: string, namespace?: string): Promise<OwnedObject | undefined> {
    const metadata = { name, ...(namespace !== undefined && { namespace }) };
    return unlessUnknown(async () => (await this.#api.read({ apiVersion, kind, metadata })) as OwnedObject);
  }

  /** Lists the objects of a kind in all namespaces. */
  async list(apiVersion: string, kind: string, labels: string): Promise<readonly OwnedObject[]> {
    const every = [undefined, undefined, undefined, undefined, undefined] as const;
    const found = await unlessUnknown(() => this.#api.list(apiVersion, kind, ...every, labels));
    // The API server leaves the kind out of the items of a list.
    return (found?.items ?? []).map((each) => ({ ...each, apiVersion, kind })) as OwnedObject[];
  }

  /**
   * Removes the owners of an object's fields. An interrupted or earlier `up` owns the fields as a different field
   * manager, with which server-side apply would conflict. Without any manager, the API server would create one that
   * owns everything.
   */
  async disown({ apiVersion, kind, metadata: { name, namespace } }: OwnedObject): Promise<void> {
    const fieldsV1 = { "f:metadata": { "f:annotations": { [`f:${annotations.urn}`]: {} } } };
    const manager = { manager: "tiltyard", operation: "Update", apiVersion, fieldsType: "FieldsV1", fieldsV1 };
    const metadata = { name, ...(namespace !== undefined && { namespace }), managedFields: [manager] };
    const options = [undefined, undefined, undefined, undefined] as const;
    await this.#api.patch({ apiVersion, kind, metadata }, ...options, PatchStrategy.MergePatch);
  }
}

/** Reads what may not exist. A lost connection, such as one that the API server has closed, is opened again. */
async function unlessUnknown<Found>(read: () => Promise<Found>, connections = 3): Promise<Found | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof ApiException && error.code === 404) return undefined;
    if (error instanceof Error && error.message.startsWith("Unrecognized API version and kind")) return undefined;
    const isLost = error instanceof TypeError && error.message === "fetch failed";
    if (isLost && connections > 1) return unlessUnknown(read, connections - 1);
    throw isLost ? new Error(`The API server cannot be reached: ${messageOf(error.cause)}`) : error;
  }
}

/**
 * A check before a resource is created. It throws an error to prevent that.
 *
 * @param wanted The inputs, which for all resources but Helm releases are the object.
 */
export type CreationCheck = (live: Pick<LiveObjects, "find" | "list" | "disown">, wanted: OwnedObject) => Promise<void>;

/** A check before an object is updated, with its inputs after and before. It throws an error to prevent the update. */
export type UpdateCheck = (live: Pick<LiveObjects, "list">, wanted: OwnedObject, former: OwnedObject) => Promise<void>;

/** Resource definitions belong to no stack. */
const sharedType = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition";

/**
 * The identifier of every cluster outside the stack. Without one, the provider would interpret another address of its
 * cluster as another cluster. The real id is in the marks of objects, by which another cluster is rejected.
 */
const outsideStack = "outside the stack";

/**
 * The Pulumi provider of a stack's Kubernetes objects. It adopts an existing object only if {@link refusalOf} has no
 * objection, and updates none on another cluster. Every component that creates objects with it must pass {@link owned} to
 * them.
 */
export class ClusterProvider extends kubernetes.Provider {
  /** The mark of all objects of one deployment of a stack. */
  readonly deployment: pulumi.Output<string>;
  readonly #name: string;
  readonly #kubeconfig: ClusterProviderArgs["kubeconfig"];
  readonly #config: () => Promise<KubeConfig>;
  readonly #created: pulumi.ResourceHook;
  readonly #retained: pulumi.ResourceHook;
  readonly #updated: pulumi.ResourceHook;
  /** The id of a cluster outside the stack. */
  readonly #cluster: pulumi.Output<string | undefined> | undefined;

  constructor(name: string, args: ClusterProviderArgs, options: pulumi.ComponentResourceOptions) {
    const { kubeconfig, context, clusterIdentifier, deployment } = args;
    super(
      name,
      {
        ...(kubeconfig !== undefined && { kubeconfig: pulumi.secret(kubeconfig) }),
        ...(context !== undefined && { context }),
        clusterIdentifier: clusterIdentifier ?? outsideStack,
        enableServerSideApply: true,
        // Without this option, a stack could not start again over its retained objects.
        upsertExistingObjects: true,
      },
      options,
    );
    this.deployment = deployment ?? this.id;
    this.#name = name;
    this.#kubeconfig = kubeconfig;
    let config: Promise<KubeConfig> | undefined;
    this.#config = () => {
      config ??= kubeConfigOf(kubeconfig, context);
      return config;
    };
    let alone: Promise<void> | undefined;
    const check =
      (isRetained: boolean): CreationCheck =>
      async (live, wanted) => {
        // The preview of an upgrade of the stack's own cluster may plan another provider, whose id it does not know, and
        // would find the stack's own objects to be those of another deployment.
        if (pulumi.runtime.isDryRun() && pulumi.Output.isInstance(kubeconfig)) return;
        // This check runs once, before the first object is created or adopted.
        alone ??= refuseOtherDeployments(live, wanted);
        await alone;
        await refuseOthers(live, wanted, isRetained);
      };
    this.#created = this.beforeCreate("created", check(false));
    this.#retained = this.beforeCreate("retained", check(true));
    this.#updated = this.#hook("updated", async ({ newInputs, oldInputs }) => {
      const refusal = otherCluster(newInputs as unknown as OwnedObject, oldInputs as unknown as OwnedObject);
      if (refusal !== undefined) throw new Error(refusal);
    });
    this.#cluster = clusterIdentifier === undefined ? this.#readCluster(options) : undefined;
  }

  #readCluster(options: pulumi.ComponentResourceOptions): pulumi.Output<string | undefined> {
    const system = new ReadNamespace(`${this.#name}-system`, "kube-system", { ...options, provider: this });
    return system.metadata.apply((metadata) => metadata?.uid);
  }

  /**
   * Creates a resource hook for `hooks.beforeCreate`, which may also be one for `hooks.beforeUpdate`.
   *
   * @param name The name, which is unique among the hooks of this provider.
   */
  beforeCreate(name: string, check: CreationCheck): pulumi.ResourceHook {
    return this.#hook(name, async ({ newInputs = {} }) => {
      // A preview may not know the name yet.
      const isUnknown = newInputs.metadata !== undefined && typeof newInputs.metadata.name !== "string";
      if (!isUnknown) await check(await this.#live(), newInputs as unknown as OwnedObject);
    });
  }

  /** Creates a resource hook for `hooks.beforeUpdate` with a name like {@link beforeCreate}. */
  beforeUpdate(name: string, check: UpdateCheck): pulumi.ResourceHook {
    return this.#hook(name, async ({ newInputs, oldInputs }) => {
      await check(await this.#live(), newInputs as unknown as OwnedObject, oldInputs as unknown as OwnedObject);
    });
  }

  #hook(name: string, run: (args: pulumi.ResourceHookArgs) => Promise<void>): pulumi.ResourceHook {
    // The engine calls a hook outside the context of the program, in which Pulumi knows no stack.
    const inProgram = AsyncLocalStorage.snapshot();
    const checked = async (args: pulumi.ResourceHookArgs) => {
      // The preview of a stack that creates its cluster has no API server.
      if (await isKnown(pulumi.output(this.#kubeconfig))) await run(args);
    };
    return new pulumi.ResourceHook(`${this.#name}-${name}`, (args) => inProgram(() => checked(args)), {
      onDryRun: true,
    });
  }

  async #live(): Promise<LiveObjects> {
    return new LiveObjects(await this.#config());
  }

  /**
   * Returns options that mark the objects below a component as the stack's and check them before their creation.
   *
   * They use Pulumi's `transformations` instead of the newer `transforms`, which only the engine runs: with its mocks, no
   * test could check that all objects have the marks. All objects are created by this program, so both see the same.
   */
  owned<Options extends pulumi.ResourceOptions>(component: StackComponent, options?: Options) {
    const own: pulumi.ResourceTransformation = (args) => this.#own(component, args);
    return { ...options, transformations: [...(options?.transformations ?? []), own] } as Options;
  }

  #own(
    component: StackComponent,
    { type, name, props, opts }: pulumi.ResourceTransformationArgs,
  ): pulumi.ResourceTransformationResult | undefined {
    if (!type.startsWith("kubernetes:") || props.metadata === undefined || type === sharedType) return undefined;
    const check = opts.retainOnDelete === true ? this.#retained : this.#created;
    const hooks = opts.hooks ?? {};
    return {
      props: { ...props, metadata: this.#marked(component, type, props.metadata, urnOf(name, type, opts.parent)) },
      opts: {
        ...opts,
        hooks: {
          ...hooks,
          beforeCreate: [check, ...(hooks.beforeCreate ?? [])],
          beforeUpdate: [this.#updated, ...(hooks.beforeUpdate ?? [])],
        },
      },
    };
  }

  #marked(component: StackComponent, type: string, metadata: Metadata, urn: Promise<string>): Metadata {
    const kind = type.split(":").at(-1) ?? "";
    const marks = {
      ...restoringAnnotations(kind),
      ...{ [annotations.urn]: urn, [annotations.deployment]: this.deployment },
      ...(this.#cluster !== undefined && { [annotations.cluster]: this.#cluster }),
    };
    return {
      ...metadata,
      labels: {
        ...recommendedLabels(kind, component),
        ...metadata.labels,
        [stackLabel]: stackId(),
      },
      annotations: pulumi.output<Metadata | undefined>(metadata.annotations).apply((given) => ({ ...given, ...marks })),
    };
  }
}

/**
 * A namespace that the program only reads. Without the kind, as in `Namespace.get`, a read would store other outputs than a
 * refresh, which would report an update after each `up`.
 */
class ReadNamespace extends pulumi.CustomResource {
  declare readonly metadata: pulumi.Output<{ readonly uid?: string } | undefined>;

  constructor(name: string, id: string, options: pulumi.CustomResourceOptions) {
    const known = { apiVersion: "v1", kind: "Namespace", metadata: undefined };
    super("kubernetes:core/v1:Namespace", name, known, { ...options, id });
  }
}

/**
 * Returns the URN as a promise, because the output depends on the parent and thus on all its children, including the
 * resource itself.
 */
function urnOf(name: string, type: string, parent: pulumi.Resource | undefined): Promise<string> {
  return new Promise((resolve) => pulumi.createUrn(name, type, parent).apply(resolve));
}

/**
 * A stack with the same name and another state would share what is retained, such as namespaces. Every deployment has
 * service accounts, and none of them is retained.
 *
 * @throws Error when the cluster has objects of another deployment of the stack.
 */
async function refuseOtherDeployments(live: Parameters<CreationCheck>[0], wanted: OwnedObject): Promise<void> {
  const accounts = await live.list("v1", "ServiceAccount", `${stackLabel}=${stackId()}`);
  const refusal = otherDeployment(wanted, accounts);
  if (refusal !== undefined) throw new Error(refusal);
}

/** @throws Error when the object exists and the stack must not adopt it. */
async function refuseOthers(
  live: Parameters<CreationCheck>[0],
  wanted: OwnedObject,
  isRetained: boolean,
): Promise<void> {
  const { apiVersion, kind, metadata } = wanted;
  const found = await live.find(apiVersion, kind, metadata.name, metadata.namespace);
  const refusal = found && refusalOf(wanted, found, isRetained);
  if (refusal !== undefined) throw new Error(refusal);
  const isOwn = found?.metadata.labels?.[stackLabel] !== undefined;
  if (found !== undefined && isOwn && !pulumi.runtime.isDryRun()) await live.disown(found);
}

/** Reports whether a value is known, which in a preview it may not be. Pulumi's type hides this field. */
export async function isKnown(output: object): Promise<boolean> {
  return !("isKnown" in output) || (await output.isKnown) === true;
}

async function kubeConfigOf(
  kubeconfig: ClusterProviderArgs["kubeconfig"],
  context: string | undefined,
): Promise<KubeConfig> {
  const config = new KubeConfig();
  if (kubeconfig === undefined) config.loadFromDefault();
  else config.loadFromString(await new Promise<string>((resolve) => pulumi.output(kubeconfig).apply(resolve)));
  if (context !== undefined) config.setCurrentContext(context);
  return config;
}
