import type * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import type { Cluster } from "../../cluster.ts";
import { placedOn } from "../../node-pools.ts";
import type { RunnerSettings } from "../../settings/runner-settings.ts";
import type { CatalogParts } from "../catalog/catalog.ts";
import { containerSecurity, userId } from "../catalog/pod-parts.ts";
import type { PlatformParts } from "../ray/ray-platform.ts";

const folder = "/etc/tiltyard";
/** The file that the runner writes after each pass, which lasts seconds. A runner that stopped writing it hangs. */
const aliveFile = "/tmp/alive";
const passMinutesMax = 5;

/** A runner, and the catalog and the Ray clusters that it works for. */
export interface RunnerDeps {
  readonly cluster: Cluster;
  readonly platform: PlatformParts;
  readonly catalog: CatalogParts;
  readonly settings: RunnerSettings;
}

/** The parts of a runner's pod. */
interface RunnerPodArgs {
  readonly account: pulumi.Input<string>;
  /** The ConfigMap with the Ray clusters of jobs. */
  readonly file: pulumi.Input<string>;
  /** The Secret with the API key. */
  readonly secret: pulumi.Input<string>;
}

/** Returns the pod of the runner, which uses the catalog's image. It is stateless, so another pod can continue its work. */
export function runnerPodSpec(
  { cluster, platform, catalog, settings }: RunnerDeps,
  { account, file, secret }: RunnerPodArgs,
): kubernetes.types.input.core.v1.PodSpec {
  const { queue = platform.queue, maxJobs, maxJobsPerPrincipal, attempts, capacityTimeoutMinutes } = settings;
  const options = {
    "max-jobs": maxJobs,
    "max-jobs-per-principal": maxJobsPerPrincipal,
    attempts,
    "capacity-timeout-minutes": capacityTimeoutMinutes,
    queue,
    "alive-file": aliveFile,
  };
  return {
    serviceAccountName: account,
    automountServiceAccountToken: true,
    // The variables of the catalog's service would have the prefix of settings.
    enableServiceLinks: false,
    priorityClassName: platform.controlPriorityClass,
    ...placedOn(cluster.coreSelector),
    securityContext: {
      runAsNonRoot: true,
      runAsUser: userId,
      runAsGroup: userId,
      seccompProfile: { type: "RuntimeDefault" },
    },
    containers: [
      {
        name: "runner",
        image: catalog.image,
        command: ["node", "runner/main.ts", "--file", `${folder}/runner.yaml`],
        args: Object.entries(options).flatMap(([name, value]) =>
          value === undefined ? [] : [`--${name}`, `${value}`],
        ),
        env: [{ name: "TILTYARD_CATALOG_URL", value: catalog.url }],
        envFrom: [{ secretRef: { name: secret } }],
        securityContext: containerSecurity,
        resources: { requests: { cpu: "100m", memory: "192Mi" }, limits: { memory: "384Mi" } },
        // The first pass waits for the catalog, which may start at the same time.
        livenessProbe: {
          exec: { command: ["sh", "-c", `test -n "$(find ${aliveFile} -mmin -${passMinutesMax})"`] },
          periodSeconds: 60,
          failureThreshold: passMinutesMax,
          timeoutSeconds: 10,
        },
        volumeMounts: [
          { name: "file", mountPath: folder, readOnly: true },
          { name: "tmp", mountPath: "/tmp" },
        ],
      },
    ],
    volumes: [
      { name: "file", configMap: { name: file } },
      { name: "tmp", emptyDir: { sizeLimit: "64Mi" } },
    ],
  };
}
