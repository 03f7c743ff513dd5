import { ownValue, parsing } from "@tiltyard/protocol";
import { z } from "zod";
import { isAtLeast, labelValue, platformDefaults, rayLogs, rayVersionMin } from "./agreed-values.ts";
import { podPlacement } from "./pod-placement.ts";
import { Memory, Storage } from "./quantity.ts";

/** The methods of signing in to Kubernetes (`config_method`). */
export const configMethods = ["LOCAL", "IN_CLUSTER", "EKS_AUTH", "GKE_AUTH"] as const;

/** Creates the schema of a name that both Kubernetes objects and the names that Ray derives from it can have. */
const objectName = (lengthMax: number) =>
  z
    .string({ error: ({ input }) => (input === undefined ? "is required" : undefined) })
    .regex(
      new RegExp(`^[a-z]([-a-z0-9]{0,${lengthMax - 2}}[a-z0-9])?$`),
      `must be at most ${lengthMax} lower-case letters, digits and dashes, and begin with a letter`,
    );

/**
 * The name of a cluster. KubeRay derives `<name>-head-svc` and the names of pods from it, which have at most 63
 * characters.
 */
const clusterName = objectName(40);

const labels = z.record(z.string(), z.string());
const environment = z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be a variable's name"), z.string());
const cpus = z.int().positive();
/**
 * The maximum lease. A longer one would keep an orphan too long, and its renewal would exceed the maximum delay of a
 * timer.
 */
const leaseSecondsMax = 30 * 24 * 60 * 60;
/**
 * The first version of Ray that can require a token, and the first version of KubeRay that generates a token for every
 * cluster.
 */
export const tokenRayVersionMin = [2, 52] as const;
export const tokenOperatorVersionMin = [1, 6] as const;

/** The folders that every pod of Ray mounts. */
export const rayFolder = rayLogs.folder;
export const sharedMemoryFolder = "/dev/shm";
const ownFolders: readonly string[] = [rayFolder, sharedMemoryFolder];

const rayVersion = z
  .string("must be text: write it in quotes")
  .regex(/^\d+\.\d+\.\d+$/, "must be a version such as 2.60.0")
  .refine((text) => isAtLeast(text, rayVersionMin), `must be ${rayVersionMin.join(".")} or later`);

/** The parameters that the head and workers share. Absent ones have the default of the cluster. */
const group = {
  serviceAccount: z.string().optional(),
  nodeSelector: labels.optional(),
  image: z.string().optional(),
  env: environment.default({}),
  priorityClassName: z.string().optional(),
  /** The secrets of the namespace that grant access to images. */
  imagePullSecrets: z.array(objectName(253)).optional(),
  /** The disk of the node that a pod uses for its files. */
  ephemeralStorage: Storage.optional(),
  ...podPlacement,
};

const HeadGroup = z.strictObject({
  ...group,
  numCpus: cpus.default(4),
  memory: Memory.default("8Gi"),
});

const WorkerGroup = z
  .strictObject({
    ...group,
    name: objectName(40).default("worker"),
    numGpus: z.int().nonnegative().default(0),
    numCpus: cpus.optional(),
    memory: Memory.optional(),
    minReplicas: z.int().nonnegative().default(0),
    maxReplicas: z.int().positive().default(100),
    idleTimeoutSeconds: z.int().positive().default(60),
  })
  .refine((worker) => worker.maxReplicas >= worker.minReplicas, {
    path: ["maxReplicas"],
    message: "must not be less than minReplicas",
  })
  // Workers with a GPU need more CPU and memory to feed it.
  .transform((worker) => ({
    ...worker,
    numCpus: worker.numCpus ?? (worker.numGpus > 0 ? 8 : 4),
    memory: worker.memory ?? (worker.numGpus > 0 ? "16Gi" : "8Gi"),
  }));

const Volume = z.strictObject({
  claim: z.string().min(1),
  path: z
    .string()
    .regex(/^\/[^:]*[^/:]$/, "must be the path of a folder, such as /mnt/tables")
    .refine((path) => !ownFolders.includes(path), `must not be one of Ray's: ${ownFolders.join(", ")}`),
});

/** The parameters of a Ray cluster in production. docs/reference/ray-cluster.md lists them. */
export const ClusterParameters = z
  .strictObject({
    name: clusterName,
    namespace: objectName(63).default(platformDefaults.namespace),
    configMethod: z.enum(configMethods, `must be one of ${configMethods.join(", ")}`).default("LOCAL"),
    clusterName: z.string().optional(),
    region: z.string().optional(),
    project: z.string().optional(),
    roleName: z.string().optional(),
    kubeContext: z.string().optional(),
    usePortforwarding: z.boolean().default(true),
    serviceAccount: z.string().default(platformDefaults.serviceAccount),
    rayVersion: rayVersion.default(platformDefaults.rayVersion),
    image: z.string().optional(),
    imagePullSecrets: z.array(objectName(253)).default([]),
    /** The image of groups with a GPU that specify none; the image of all other groups if only `image` is specified. */
    gpuImage: z.string().optional(),
    /** The node selectors of the stack, for groups that specify none. */
    nodeSelectors: z.strictObject({ head: labels, workerCpu: labels, workerGpu: labels }).prefault(defaultSelectors()),
    /** The priority class of the head if its group specifies none. */
    headPriorityClass: z.string().optional(),
    headGroup: HeadGroup.prefault({}),
    workerGroups: z.array(WorkerGroup).default([]),
    env: environment.default({}),
    /** A secret of the namespace whose keys are variables of all pods. `env` overrides them. */
    environmentSecret: objectName(253).optional(),
    /** The volume claims of the namespace that all pods mount, for tables or models outside an object store. */
    volumes: z.array(Volume).default([]),
    /** The side car in each pod that preserves Ray's logs: the image of Fluent Bit and a config map of the namespace. */
    logs: z.strictObject({ image: z.string().min(1), configMap: objectName(63) }).optional(),
    /** The URL of the catalog, which jobs receive as TILTYARD_CATALOG_URL. */
    catalogUrl: z.string().optional(),
    /** A secret of the namespace whose key `apiKey` is a key of the catalog, which jobs receive as TILTYARD_API_KEY. */
    catalogKeySecret: objectName(63).optional(),
    /** The Redis with which the head can be restarted without the loss of the cluster. */
    gcsFaultTolerance: z
      .strictObject({ redisAddress: z.string(), redisPasswordSecret: z.string().optional() })
      .optional(),
    timeoutSeconds: z.int().positive().default(900),
    leaseSeconds: z.int().min(30).max(leaseSecondsMax).default(120),
    adopt: z.boolean().default(false),
    /**
     * The authentication. With `token`, Ray requires a token, which KubeRay generates and stores in a secret named
     * after the cluster.
     */
    auth: z.enum(["none", "token"]).default("token"),
  })
  .superRefine((parameters, context) => {
    const problem = (path: (string | number)[], message: string) => context.addIssue({ code: "custom", path, message });
    const { configMethod, workerGroups } = parameters;
    const names = workerGroups.map((worker) => worker.name);
    names.forEach((name, index) => {
      if (names.indexOf(name) !== index)
        problem(["workerGroups", index, "name"], `is the name of another group: ${name}`);
    });
    const paths = parameters.volumes.map((volume) => volume.path);
    paths.forEach((path, index) => {
      if (paths.indexOf(path) !== index) problem(["volumes", index, "path"], `is the path of another volume: ${path}`);
    });
    if (parameters.auth === "token" && !isAtLeast(parameters.rayVersion, tokenRayVersionMin))
      problem(
        ["auth"],
        `must be none with a rayVersion before ${tokenRayVersionMin.join(".")}, which does not support tokens`,
      );
    const cloud = {
      EKS_AUTH: ["clusterName", "region"],
      GKE_AUTH: ["clusterName", "region"],
      LOCAL: [],
      IN_CLUSTER: [],
    } as const;
    for (const name of cloud[configMethod])
      if (parameters[name] === undefined) problem([name], `is required with configMethod ${configMethod}`);
  });
export type ClusterParameters = z.infer<typeof ClusterParameters>;
/** The parameters of a caller, where those with defaults are optional. */
export type ClusterOptions = z.input<typeof ClusterParameters>;

function defaultSelectors() {
  const { labelDomain, labelKeys } = platformDefaults;
  const label = (key: string) => ({ [`${labelDomain}/${key}`]: labelValue });
  return { head: label(labelKeys.head), workerCpu: label(labelKeys.workerCpu), workerGpu: label(labelKeys.workerGpu) };
}

/** An error that lists all invalid parameters with their paths. */
export class ParameterError extends Error {
  override readonly name = "ParameterError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`The parameters of the Ray cluster are not valid:\n  ${problems.join("\n  ")}`);
    this.problems = problems;
  }
}

/** Parses parameters with names in camelCase. @throws ParameterError */
export function parseParameters(options: unknown): ClusterParameters {
  return parse(options, (name) => name);
}

/**
 * Parses parameters with names in snake_case, as in a file: `worker_groups`, `num_cpus`.
 *
 * @param layers The parameters, with either spelling of their names. Later layers have precedence.
 * @throws ParameterError
 */
export function parseFileParameters(...layers: readonly object[]): ClusterParameters {
  return parse(Object.assign({}, ...layers.map((layer) => toCamelCase(layer))), snake);
}

/**
 * Parses the parameters of the Ray cluster of a job. Without worker groups, it has one group of CPU workers.
 *
 * @param layers The layers of `parseFileParameters`.
 * @throws ParameterError
 */
export function parseJobCluster(name: string, ...layers: readonly object[]): ClusterParameters {
  return parseFileParameters({ workerGroups: [{}] }, ...layers, { name });
}

/** @param spell Returns the name of a parameter as the caller spells it. */
function parse(options: unknown, spell: (name: string) => string): ClusterParameters {
  const parsed = ClusterParameters.safeParse(options, parsing);
  if (parsed.success) return parsed.data;
  /** Spells the names of a path up to the first map or field with other names. */
  const format = (path: PropertyKey[]) => {
    const outer = path.findIndex((part) => ownValue(levelsOfOurs, String(part)) === 0);
    return path.map((part, index) => (outer < 0 || index <= outer ? spell(String(part)) : String(part)));
  };
  throw new ParameterError(
    parsed.error.issues.map((issue) => {
      // The message names the key as the schema spells it, and the caller may have spelled it differently.
      const keys = issue.code === "unrecognized_keys" ? issue.keys : [];
      const unknown = keys.flatMap((key) => format([...issue.path, key]).slice(-1));
      const message = unknown.length > 0 ? `has no parameter ${unknown.join(", ")}` : issue.message;
      return `${format(issue.path).join(".") || "the parameters"}: ${message}`;
    }),
  );
}

/**
 * The maps with keys that the caller chooses, such as labels and variables, with the number of outer levels whose keys
 * are parameters, and the fields with Kubernetes' own names.
 */
const levelsOfOurs: Readonly<Record<string, number>> = {
  ...{ nodeSelector: 0, env: 0, nodeSelectors: 1 },
  ...{ tolerations: 0, affinity: 0, topologySpreadConstraints: 0 },
};

function toCamelCase(value: unknown, levels = Number.POSITIVE_INFINITY): unknown {
  if (Array.isArray(value)) return value.map((each) => toCamelCase(each, levels));
  if (levels === 0 || value === null || typeof value !== "object") return value;
  const entries = Object.entries(value).map(([key, each]) => {
    const name = camel(key);
    return [name, toCamelCase(each, ownValue(levelsOfOurs, name) ?? levels - 1)];
  });
  return Object.fromEntries(entries);
}

function camel(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
