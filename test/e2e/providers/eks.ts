/** A stand-in for the provider of EKS, whose cluster is a component of the provider with the cluster of AWS as a child. */
import { flushCompileCache } from "node:module";
import * as eks from "@pulumi/aws/eks/index.js";
import * as pulumi from "@pulumi/pulumi";
import { main } from "@pulumi/pulumi/provider/index.js";
import { parse } from "yaml";
import { cloudOutputs } from "../../support/clouds.ts";
import { readCurrentContext } from "../kubernetes/kubeconfig.ts";
import { endWithEngine, libraryVersion } from "./plugin.ts";

async function construct(name: string, type: string, inputs: pulumi.Inputs, options: pulumi.ComponentResourceOptions) {
  if (type !== "eks:index:Cluster") throw new Error(`the stand-in for EKS creates no ${type}`);
  const component = new pulumi.ComponentResource(type, name, {}, options);
  const eksCluster = new eks.Cluster(
    `${name}-eksCluster`,
    {
      name: inputs.name,
      version: inputs.version,
      roleArn: "arn:aws:iam::123456789012:role/eks",
      vpcConfig: { subnetIds: inputs.privateSubnetIds },
    },
    { parent: component },
  );
  const { oidcProviderArn, oidcProviderUrl } = cloudOutputs(type, name, inputs);
  return {
    urn: component.urn,
    state: { eksCluster, oidcProviderArn, oidcProviderUrl, kubeconfigJson: kubeconfigJson() },
  };
}

/** Returns a kubeconfig in JSON, like the real provider. */
function kubeconfigJson(): string {
  return JSON.stringify(parse(readCurrentContext(process.env.TILTYARD_E2E_KUBECONFIG).text));
}

endWithEngine();
await main({ version: libraryVersion("eks"), construct }, process.argv.slice(2));
// The engine kills this process, which then has no time to save its compiled code for the next one.
flushCompileCache();
