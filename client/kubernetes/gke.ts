import type { KubeConfig } from "@kubernetes/client-node";
import { messageOf } from "@tiltyard/protocol";
import { GoogleAuth } from "google-auth-library";
import { ConnectError } from "./connect-error.ts";
import { tokenConfig } from "./token-config.ts";

export interface GkeParameters {
  readonly clusterName: string;
  /** The region or zone of the cluster. */
  readonly region: string;
  /** The project of the cluster; that of the credentials when absent. */
  readonly project: string | undefined;
}

/**
 * The scopes of tokens. Without the second one, Kubernetes identifies a service account by a number instead of its
 * e-mail address.
 */
const scopes = ["https://www.googleapis.com/auth/cloud-platform", "https://www.googleapis.com/auth/userinfo.email"];

/** The minimum remaining validity of the tokens that Google's library returns. They are valid for an hour. */
const tokenLifeMillis = 5 * 60_000;

interface GkeCluster {
  readonly endpoint: string;
  readonly privateClusterConfig?: { readonly enablePrivateEndpoint?: boolean };
  readonly controlPlaneEndpointsConfig?: {
    readonly dnsEndpointConfig?: { readonly endpoint?: string; readonly allowExternalTraffic?: boolean };
  };
  readonly masterAuth: { readonly clusterCaCertificate: string };
}

/**
 * Finds the cluster with Google's application default credentials.
 *
 * @throws ConnectError
 */
export async function connectGke({ clusterName, region, project }: GkeParameters): Promise<KubeConfig> {
  try {
    const auth = new GoogleAuth({ scopes });
    const path = `projects/${project ?? (await auth.getProjectId())}/locations/${region}/clusters/${clusterName}`;
    const { data } = await auth.request<GkeCluster>({ url: `https://container.googleapis.com/v1/${path}` });
    return tokenConfig({ name: clusterName, ...serverOf(data) }, async () => ({
      token: (await auth.getAccessToken()) ?? "",
      expiresAtMillis: Date.now() + tokenLifeMillis,
    }));
  } catch (error) {
    const reason = messageOf(error);
    const steps = "check your credentials (gcloud auth application-default login), project, region and cluster_name";
    throw new ConnectError(`cannot sign in to the GKE cluster ${clusterName} in ${region}: ${reason}; ${steps}`, {
      cause: error,
    });
  }
}

/**
 * Returns the server of a cluster. One without a public address is reached through Google's front end, whose
 * certificate is publicly trusted.
 */
function serverOf({ endpoint, masterAuth, privateClusterConfig, controlPlaneEndpointsConfig }: GkeCluster) {
  const dns = controlPlaneEndpointsConfig?.dnsEndpointConfig;
  return privateClusterConfig?.enablePrivateEndpoint === true && dns?.allowExternalTraffic === true
    ? { server: `https://${dns.endpoint}` }
    : { server: `https://${endpoint}`, caData: masterAuth.clusterCaCertificate };
}
