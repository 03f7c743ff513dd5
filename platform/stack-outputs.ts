import { z } from "zod";

const nodeSelector = z.record(z.string(), z.string());

/**
 * The outputs of a Tiltyard stack, which contain everything that a client needs to create a Ray cluster and to access
 * the catalog. `infra/` writes them and `client/` reads them. Outputs that a variant does not have are absent.
 */
export const StackOutputs = z.object({
  variant: z
    .enum(["existing", "existing-gke", "existing-eks", "gke", "eks"])
    .describe("The kind of the cluster of the stack."),
  clusterName: z.string().describe("The name of the managed Kubernetes cluster, or a name for the existing one."),
  configMethod: z
    .enum(["LOCAL", "EKS_AUTH", "GKE_AUTH"])
    .describe("The authentication of clients to Kubernetes, `config_method` of a Ray cluster."),
  kubeContext: z.string().optional().describe("`existing`: the context of the kubeconfig, when the stack names one."),
  region: z.string().optional().describe("`gke`, `eks`: the cloud region of the cluster."),
  project: z.string().optional().describe("`gke`: the Google Cloud project."),
  roleName: z.string().optional().describe("`eks`: the ARN of the IAM role that clients assume."),
  kubeconfig: z
    .string()
    .optional()
    .describe("`gke`, `eks`: a kubeconfig that gets its credentials from the cloud's own tools. Secret."),
  kubernetesVersion: z.string().optional().describe("`gke`, `eks`: the version of the control plane."),
  namespace: z.string().describe("The namespace of Ray clusters."),
  serviceAccount: z.string().describe("The service account of the pods of Ray clusters."),
  headNodeSelector: nodeSelector.describe("Labels of the nodes for Ray heads."),
  workerCpuNodeSelector: nodeSelector.describe("Labels of the nodes for workers without a GPU."),
  workerGpuNodeSelector: nodeSelector.describe("Labels of the nodes for workers with a GPU."),
  headPriorityClass: z
    .string()
    .optional()
    .describe("The priority class of Ray heads, whose loss ends a whole cluster."),
  nodeLimits: z
    .object({ head: z.int(), workerCpu: z.int(), workerGpu: z.int() })
    .optional()
    .describe("`gke`, `eks`: the maximum number of nodes of each role that the autoscaler creates."),
  operatorVersion: z.string().optional().describe("The version of the KubeRay operator; absent when it was there."),
  rayVersion: z.string().describe("The version of Ray that clusters run, e.g. `2.60.0`."),
  rayAuth: z
    .enum(["token", "none"])
    .optional()
    .describe(
      "The authentication of Ray clusters: `token`, or `none` with versions of Ray or KubeRay that do not support tokens.",
    ),
  rayImage: z.string().describe("The container image of Ray clusters."),
  rayGpuImage: z.string().optional().describe("That of workers with a GPU."),
  rayLogs: z
    .object({ image: z.string(), configMap: z.string() })
    .optional()
    .describe(
      "The retention of Ray's logs: the image and the settings of Fluent Bit, which runs as a sidecar in Ray's pods.",
    ),
  bucketUri: z.string().describe("The location of the tables: `s3://...`, `gs://...` or `file:///...`."),
  rayBucketAccess: z
    .enum(["direct", "vended"])
    .optional()
    .describe(
      "The access of Ray pods to the bucket: with their service account, or only with credentials from the catalog.",
    ),
  tablesVolume: z
    .object({ claim: z.string(), path: z.string() })
    .optional()
    .describe("`file:` buckets: the claim of the volume that has the tables, and where pods mount it."),
  queue: z.string().optional().describe("With Kueue: the queue of jobs, in each namespace with a quota."),
  teams: z
    .record(
      z.string(),
      z.object({
        namespace: z.string(),
        bucketUri: z.string(),
        roleName: z.string().optional(),
      }),
    )
    .optional()
    .describe("The outputs that differ for a team, by its name."),
  keptOnDestroy: z
    .array(z.string())
    .optional()
    .describe(
      "On clouds: the resources that remain after `pulumi destroy`, which are buckets by their URIs and final snapshots of databases.",
    ),
  catalogNamespace: z.string().optional().describe("The namespace of the catalog, its secrets and its account."),
  catalogUrl: z.string().optional().describe("The catalog, for pods of the cluster."),
  catalogService: z
    .string()
    .optional()
    .describe("The Kubernetes service of the catalog in its namespace, for port forwarding."),
  catalogPublicUrl: z.string().optional().describe("The catalog, from outside of the cluster."),
  jobRayClusters: z
    .array(z.string())
    .optional()
    .describe("The Ray clusters that a job's request may name; absent when the stack runs no jobs."),
  catalogApiKey: z.string().optional().describe("An API key of the catalog with the role admin. Secret."),
});
export type StackOutputs = z.infer<typeof StackOutputs>;

/** The outputs that the engine encrypts and that must not appear in logs. */
export const secretOutputs = ["kubeconfig", "catalogApiKey"] as const satisfies readonly (keyof StackOutputs)[];
