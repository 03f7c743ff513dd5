import { AsyncLocalStorage } from "node:async_hooks";
import { ApiException, KubeConfig, KubernetesObjectApi, PatchStrategy } from "@kubernetes/client-node";
import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { annotations, type OwnedObject, refusalOf, stackId, stackLabel } from "./ownership.ts";

export interface ClusterProviderArgs {
  /** The text of a kubeconfig; the user's own when absent. */
  readonly kubeconfig?: string | pulumi.Output<string> | undefined;
  readonly context?: string | undefined;
  readonly clusterIdentifier?: pulumi.Input<string>;
}

// biome-ignore lint/suspicious/noExplicitAny: the metadata of any kind, of which parts may be outputs.
type Metadata = Readonly<Record<string, any>>;

/** Reads objects of the cluster. Neither a missing object nor a kind that the cluster does not know is an error. */
export class LiveObjects {
  readonly #api: KubernetesObjectApi;

  constructor(config: KubeConfig) {
    this.#api = KubernetesObjectApi.makeApiClient(config);
  }

  async find(apiVersion: string, kind: string, name: string, namespace?: string): Promise<OwnedObject | undefined> {
    const metadata = { name, ...(namespace !== undefined && { namespace }) };
    return unlessUnknown(async () => (await this.#api.read({ apiVersion, kind, metadata })) as OwnedObject);
  }

  /** Lists the objects of a kind in all namespaces. */
  async list(apiVersion: string, kind: string, labels: string): Promise<readonly OwnedObject[]> {
    const every = [undefined, undefined, undefined, undefined, undefined] as const;
    const found = await unlessUnknown(() => this.#api.list(apiVersion, kind, ...every, labels));
    return (found?.items ?? []) as OwnedObject[];
  }

  /**
   * Removes the owners of an object's fields. An interrupted or an earlier `up` owns them as another field manager, with which
   * server-side apply would conflict. Without any manager, the API server would invent one that owns everything.
   */
  async disown({ apiVersion, kind, metadata: { name, namespace } }: OwnedObject): Promise<void> {
    const fieldsV1 = { "f:metadata": { "f:annotations": { [`f:${annotations.urn}`]: {} } } };
    const manager = { manager: "tiltyard", operation: "Update", apiVersion, fieldsType: "FieldsV1", fieldsV1 };
    const metadata = { name, ...(namespace !== undefined && { namespace }), managedFields: [manager] };
    const options = [undefined, undefined, undefined, undefined] as const;
    await this.#api.patch({ apiVersion, kind, metadata }, ...options, PatchStrategy.MergePatch);
  }
}

async function unlessUnknown<Found>(read: () => Promise<Found>): Promise<Found | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof ApiException && error.code === 404) return undefined;
    if (error instanceof Error && error.message.startsWith("Unrecognized API version and kind")) return undefined;
    throw error;
  }
}

/** A check before an object is created. It throws an error to prevent that. */
export type CreationCheck = (live: LiveObjects, wanted: OwnedObject) => Promise<void>;

/**
 * The Pulumi provider of a stack's Kubernetes objects. It takes over an object that exists only when {@link refusalOf}
 * finds no objection: every component that creates objects with it passes {@link owned} to them.
 */
export class ClusterProvider extends kubernetes.Provider {
  readonly #name: string;
  readonly #kubeconfig: ClusterProviderArgs["kubeconfig"];
  readonly #config: () => Promise<KubeConfig>;
  readonly #created: pulumi.ResourceHook;
  readonly #retained: pulumi.ResourceHook;

  constructor(name: string, args: ClusterProviderArgs, options: pulumi.ComponentResourceOptions) {
    const { kubeconfig, context, clusterIdentifier } = args;
    super(
      name,
      {
        ...(kubeconfig !== undefined && { kubeconfig: pulumi.secret(kubeconfig) }),
        ...(context !== undefined && { context }),
        ...(clusterIdentifier !== undefined && { clusterIdentifier }),
        enableServerSideApply: true,
        // Otherwise a stack could not come up again over what it has retained.
        upsertExistingObjects: true,
      },
      options,
    );
    this.#name = name;
    this.#kubeconfig = kubeconfig;
    let config: Promise<KubeConfig> | undefined;
    this.#config = () => {
      config ??= kubeConfigOf(kubeconfig, context);
      return config;
    };
    this.#created = this.beforeCreate("created", (live, wanted) => refuseOthers(live, wanted, false));
    this.#retained = this.beforeCreate("retained", (live, wanted) => refuseOthers(live, wanted, true));
  }

  /**
   * A resource hook for `hooks.beforeCreate`.
   *
   * @param name Unique among the hooks of this provider.
   */
  beforeCreate(name: string, check: CreationCheck): pulumi.ResourceHook {
    // The engine calls a hook outside of the context of the program, without which Pulumi knows no stack.
    const inProgram = AsyncLocalStorage.snapshot();
    return new pulumi.ResourceHook(
      `${this.#name}-${name}`,
      ({ newInputs = {} }) =>
        inProgram(async () => {
          // A preview may not know the name yet.
          if (typeof newInputs.metadata?.name !== "string") return;
          await check(new LiveObjects(await this.#config()), newInputs as unknown as OwnedObject);
        }),
      // The preview of a stack that creates its cluster has no API server to ask.
      { onDryRun: !pulumi.Output.isInstance(this.#kubeconfig) },
    );
  }

  /** Options with which the objects below a component are marked as the stack's, and checked before they are created. */
  owned<Options extends pulumi.ResourceOptions>(options?: Options) {
    return { ...options, transformations: [...(options?.transformations ?? []), this.#own] } as Options;
  }

  readonly #own: pulumi.ResourceTransformation = ({ type, name, props, opts }) => {
    if (!type.startsWith("kubernetes:") || props.metadata === undefined) return undefined;
    const check = opts.retainOnDelete === true ? this.#retained : this.#created;
    const hooks = opts.hooks ?? {};
    return {
      props: { ...props, metadata: this.#marked(props.metadata, urnOf(name, type, opts.parent)) },
      opts: { ...opts, hooks: { ...hooks, beforeCreate: [check, ...(hooks.beforeCreate ?? [])] } },
    };
  };

  #marked(metadata: Metadata, urn: Promise<string>): Metadata {
    const marks = { [annotations.urn]: urn, [annotations.deployment]: this.id };
    return {
      ...metadata,
      labels: { ...metadata.labels, [stackLabel]: stackId() },
      annotations: pulumi.output<Metadata | undefined>(metadata.annotations).apply((given) => ({ ...given, ...marks })),
    };
  }
}

/** A promise, because the output depends on the parent, and so on all of its children: on the resource itself. */
function urnOf(name: string, type: string, parent: pulumi.Resource | undefined): Promise<string> {
  return new Promise((resolve) => pulumi.createUrn(name, type, parent).apply(resolve));
}

/** @throws Error when the object exists and the stack must not take it over. */
async function refuseOthers(live: LiveObjects, wanted: OwnedObject, isRetained: boolean): Promise<void> {
  const { apiVersion, kind, metadata } = wanted;
  const found = await live.find(apiVersion, kind, metadata.name, metadata.namespace);
  const refusal = found && refusalOf(wanted, found, isRetained);
  if (refusal !== undefined) throw new Error(refusal);
  const isOwn = found?.metadata.labels?.[stackLabel] !== undefined;
  if (found !== undefined && isOwn && !pulumi.runtime.isDryRun()) await live.disown(found);
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
