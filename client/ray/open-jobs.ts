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
  if (!usePortforwarding)
    return {
      jobs: new JobsApi(`http://${name}-head-svc.${namespace}.svc:${dashboardPort}`, token),
      [Symbol.asyncDispose]: async () => {},
    };
  if ((await api.headPod(name)) === undefined)
    throw new JobError(`the Ray cluster ${name} has no running head in ${namespace}. See: tiltyard cluster list`);
  const forwarding = await forwardPort(config, namespace, () => api.headPod(name), dashboardPort);
  return {
    jobs: new JobsApi(`http://127.0.0.1:${forwarding.port}`, token),
    [Symbol.asyncDispose]: () => forwarding[Symbol.asyncDispose](),
  };
}
