import { z } from "zod";
import { isAtLeast, labelValue, platformDefaults, rayLogs, rayVersionMin } from "./platform.ts";
import { Memory } from "./quantity.ts";

/** Ways to sign in to Kubernetes; `config_method` of requirements.md 2.8. */
export const configMethods = ["LOCAL", "IN_CLUSTER", "EKS_AUTH", "GKE_AUTH"] as const;

/** A name that Kubernetes takes for objects, and Ray for what it makes of it. */
const objectName = (lengthMax: number) =>
  z
    .string({ error: ({ input }) => (input === undefined ? "is required" : undefined) })
    .regex(
      new RegExp(`^[a-z]([-a-z0-9]{0,${lengthMax - 2}}[a-z0-9])?$`),
      `must be lower-case letters, digits and dashes, begin with a letter, ${lengthMax} characters at most`,
    );

/** KubeRay makes `<name>-head-svc` and names of pods of it, which have 63 characters at most. */
const clusterName = objectName(40);

const labels = z.record(z.string(), z.string());
const environment = z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be a variable's name"), z.string());
const cpus = z.int().positive();
/** A longer lease would keep an orphan too long, and be renewed later than a timer can wait. */
const leaseSecondsMax = 30 * 24 * 60 * 60;
/** The first Ray that can require a token, and the first KubeRay that generates one for every cluster. */
export const tokenRayVersionMin = [2, 52] as const;
export const tokenOperatorVersionMin = [1, 6] as const;

/** Folders that every pod of Ray mounts. */
export const rayFolder = rayLogs.folder;
export const sharedMemoryFolder = "/dev/shm";
const ownFolders: readonly string[] = [rayFolder, sharedMemoryFolder];

const rayVersion = z
  .string("must be text: write it in quotes")
  .regex(/^\d+\.\d+\.\d+$/, "must be a version such as 2.60.0")
  .refine((text) => isAtLeast(text, rayVersionMin), `must be ${rayVersionMin.join(".")} or later`);

/** What head and workers have in common; the defaults of the cluster when absent. */
const group = {
  serviceAccount: z.string().optional(),
  nodeSelector: labels.optional(),
  image: z.string().optional(),
  env: environment.default({}),
  priorityClassName: z.string().optional(),
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
  // Workers with a GPU feed it, so they get more of everything.
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

/** The parameters of requirements.md 2.8 and what else a Ray cluster in production needs. docs/reference/ray-cluster.md lists them. */
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
    /** Of groups with a GPU that name none; that of all others when `image` alone is given. */
    gpuImage: z.string().optional(),
    /** The selectors of the stack's nodes, for groups that name none. */
    nodeSelectors: z.strictObject({ head: labels, workerCpu: labels, workerGpu: labels }).prefault(defaultSelectors()),
    /** Of the head when its group names none. */
    headPriorityClass: z.string().optional(),
    headGroup: HeadGroup.prefault({}),
    workerGroups: z.array(WorkerGroup).default([]),
    env: environment.default({}),
    /** Claims of the namespace that all pods mount: where tables or models are that are no objects of a store. */
    volumes: z.array(Volume).default([]),
    /** A side car in each pod that keeps Ray's logs: the image of Fluent Bit, and a config map of the namespace. */
    logs: z.strictObject({ image: z.string().min(1), configMap: objectName(63) }).optional(),
    /** Where jobs find the catalog, which they are told in TILTYARD_CATALOG_URL. */
    catalogUrl: z.string().optional(),
    /** A secret of the namespace whose key `apiKey` is a key of the catalog: TILTYARD_API_KEY in jobs. */
    catalogKeySecret: objectName(63).optional(),
    /** Redis, for a head that can be restarted without losing the cluster. */
    gcsFaultTolerance: z
      .strictObject({ redisAddress: z.string(), redisPasswordSecret: z.string().optional() })
      .optional(),
    timeoutSeconds: z.int().positive().default(900),
    leaseSeconds: z.int().min(30).max(leaseSecondsMax).default(120),
    adopt: z.boolean().default(false),
    /** `token`: Ray requires a token, which KubeRay generates and keeps in a secret named after the cluster. */
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
      problem(["auth"], `must be none with a rayVersion before ${tokenRayVersionMin.join(".")}, which knows no tokens`);
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
/** What a caller may leave out is optional here. */
export type ClusterOptions = z.input<typeof ClusterParameters>;

function defaultSelectors() {
  const { labelDomain, labelKeys } = platformDefaults;
  const label = (key: string) => ({ [`${labelDomain}/${key}`]: labelValue });
  return { head: label(labelKeys.head), workerCpu: label(labelKeys.workerCpu), workerGpu: label(labelKeys.workerGpu) };
}

/** Parameters that are not valid. The message lists every problem with its path. */
export class ParameterError extends Error {
  override readonly name = "ParameterError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`The parameters of the Ray cluster are not valid:\n  ${problems.join("\n  ")}`);
    this.problems = problems;
  }
}

/** @throws ParameterError */
export function parseParameters(options: unknown): ClusterParameters {
  return parse(options, (path) => path.join("."));
}

/**
 * The same from a file with the names of requirements.md 2.8: `worker_groups`, `num_cpus`.
 *
 * @param layers Each with either spelling of its names; the later ones win.
 * @throws ParameterError
 */
export function parseFileParameters(...layers: readonly object[]): ClusterParameters {
  return parse(Object.assign({}, ...layers.map((layer) => toCamelCase(layer))), (path) =>
    path.map((part) => (typeof part === "string" ? snake(part) : part)).join("."),
  );
}

/**
 * The Ray cluster of jobs that name it: with one group of CPU workers where it has none.
 *
 * @param layers As `parseFileParameters` has them.
 * @throws ParameterError
 */
export function parseJobCluster(name: string, ...layers: readonly object[]): ClusterParameters {
  return parseFileParameters({ workerGroups: [{}] }, ...layers, { name });
}

function parse(options: unknown, format: (path: PropertyKey[]) => string): ClusterParameters {
  const parsed = ClusterParameters.safeParse(options);
  if (parsed.success) return parsed.data;
  throw new ParameterError(
    parsed.error.issues.map(({ path, message }) => `${format(path) || "the parameters"}: ${message}`),
  );
}

/** Maps whose keys are the caller's, labels and variables: how many levels of names are ours in each. */
const levelsOfOurs: Readonly<Record<string, number>> = { nodeSelector: 0, env: 0, nodeSelectors: 1 };

function toCamelCase(value: unknown, levels = Number.POSITIVE_INFINITY): unknown {
  if (Array.isArray(value)) return value.map((each) => toCamelCase(each, levels));
  if (levels === 0 || value === null || typeof value !== "object") return value;
  const entries = Object.entries(value).map(([key, each]) => {
    const name = camel(key);
    return [name, toCamelCase(each, levelsOfOurs[name] ?? levels - 1)];
  });
  return Object.fromEntries(entries);
}

function camel(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
