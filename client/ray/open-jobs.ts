import type { KubeConfig } from "@kubernetes/client-node";
import { type ConnectParameters, connect } from "../kubernetes/connect.ts";
import { forwardPort } from "../kubernetes/port-forward.ts";
import { RayClusterApi } from "./cluster-api.ts";
import { JobError } from "./dashboard.ts";
import { JobsApi } from "./jobs.ts";
import { dashboardPort } from "./manifest.ts";

export interface OpenJobs extends AsyncDisposable {
  readonly jobs: JobsApi;
}

/**
 * Opens the jobs of an existing Ray cluster for the lifetime of the scope.
 *
 * @throws ConnectError, KubernetesError, JobError
 */
export async function openJobs(
  parameters: ConnectParameters & {
    readonly name: string;
    readonly namespace: string;
    readonly usePortforwarding: boolean;
  },
): Promise<OpenJobs> {
  const { name, namespace, usePortforwarding } = parameters;
  const config = await connect(parameters);
  const api = new RayClusterApi(config, namespace);
  const token = await api.authToken(name);
  if (usePortforwarding && (await api.headPod(name)) === undefined)
    throw new JobError(`the Ray cluster ${name} has no running head in ${namespace}. See: tiltyard cluster list`);
  const dashboard = await openDashboard(config, api, name, usePortforwarding);
  return {
    jobs: new JobsApi(dashboard.url, token),
    [Symbol.asyncDispose]: () => dashboard[Symbol.asyncDispose](),
  };
}

/** The URL of a Ray cluster's dashboard, which is valid for the lifetime of the scope. */
export interface OpenDashboard extends AsyncDisposable {
  readonly url: string;
}

/** Returns the URL of a dashboard: of a port of this machine that is forwarded to the head, or of the head's service. */
export async function openDashboard(
  config: KubeConfig,
  api: RayClusterApi,
  name: string,
  usePortforwarding: boolean,
): Promise<OpenDashboard> {
  if (!usePortforwarding)
    return {
      url: `http://${name}-head-svc.${api.namespace}.svc:${dashboardPort}`,
      [Symbol.asyncDispose]: async () => {},
    };
  const forwarding = await forwardPort(config, api.namespace, () => api.headPod(name), dashboardPort);
  return {
    url: `http://127.0.0.1:${forwarding.port}`,
    [Symbol.asyncDispose]: () => forwarding[Symbol.asyncDispose](),
  };
}
