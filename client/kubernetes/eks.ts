import { Sha256 } from "@aws-crypto/sha256-js";
import { DescribeClusterCommand, EKSClient } from "@aws-sdk/client-eks";
import { GetCallerIdentityCommand, STSClient } from "@aws-sdk/client-sts";
import { fromNodeProviderChain, fromTemporaryCredentials } from "@aws-sdk/credential-providers";
import type { KubeConfig } from "@kubernetes/client-node";
import { SignatureV4 } from "@smithy/signature-v4";
import { ConnectError } from "./connect-error.ts";
import { type Token, tokenConfig } from "./token-config.ts";

export interface EksParameters {
  readonly clusterName: string;
  readonly region: string;
  /** The ARN of the client role, or its name in the account of the caller; the caller itself when absent. */
  readonly roleName: string | undefined;
}

/** The validity of a token. EKS accepts it for fifteen minutes after its signature, whatever expiry it contains. */
const tokenLifeMillis = 15 * 60_000;
const signedForSeconds = 60;

/**
 * Assumes the client role and finds the cluster. The token of requests is a signed call of AWS's identity service, as
 * EKS requires.
 *
 * @throws ConnectError
 */
export async function connectEks({ clusterName, region, roleName }: EksParameters): Promise<KubeConfig> {
  try {
    const role = roleName === undefined ? undefined : await arnOf(roleName, region);
    const credentials =
      role === undefined
        ? fromNodeProviderChain({ clientConfig: { region } })
        : fromTemporaryCredentials({
            params: { RoleArn: role, RoleSessionName: "tiltyard" },
            clientConfig: { region },
          });
    const { cluster } = await new EKSClient({ region, credentials }).send(
      new DescribeClusterCommand({ name: clusterName }),
    );
    const signer = new SignatureV4({ service: "sts", region, credentials, sha256: Sha256 });
    return tokenConfig(
      {
        name: clusterName,
        server: cluster?.endpoint ?? "",
        caData: cluster?.certificateAuthority?.data ?? "",
      },
      () => signToken(signer, clusterName, region),
    );
  } catch (error) {
    const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    const steps = "check your AWS credentials (aws sts get-caller-identity), region, cluster_name and role_name";
    throw new ConnectError(`cannot sign in to the EKS cluster ${clusterName} in ${region}: ${reason}; ${steps}`, {
      cause: error,
    });
  }
}

async function arnOf(roleName: string, region: string): Promise<string> {
  if (roleName.startsWith("arn:")) return roleName;
  const { Arn = "", Account } = await new STSClient({ region }).send(new GetCallerIdentityCommand({}));
  const [, partition = "aws"] = Arn.split(":");
  return `arn:${partition}:iam::${Account}:role/${roleName}`;
}

async function signToken(signer: SignatureV4, clusterName: string, region: string): Promise<Token> {
  const hostname = `sts.${region}.amazonaws.com${region.startsWith("cn-") ? ".cn" : ""}`;
  const signed = await signer.presign(
    {
      method: "GET",
      protocol: "https:",
      hostname,
      path: "/",
      query: { Action: "GetCallerIdentity", Version: "2011-06-15" },
      headers: { host: hostname, "x-k8s-aws-id": clusterName },
    },
    { expiresIn: signedForSeconds, unhoistableHeaders: new Set(["x-k8s-aws-id"]) },
  );
  const query = new URLSearchParams(
    Object.entries(signed.query ?? {}).map(([name, value]): [string, string] => [name, String(value)]),
  );
  const url = `https://${hostname}/?${query.toString().replaceAll("+", "%20")}`;
  return {
    token: `k8s-aws-v1.${Buffer.from(url).toString("base64url")}`,
    expiresAtMillis: Date.now() + tokenLifeMillis,
  };
}
