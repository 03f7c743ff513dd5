/** Stands in for `gke-gcloud-auth-plugin`: prints the credential of the cluster behind the stand-ins. */
import { readFileSync } from "node:fs";
import { KubeConfig } from "@kubernetes/client-node";

const config = new KubeConfig();
config.loadFromString(readFileSync(process.env.TILTYARD_E2E_KUBECONFIG ?? "", "utf8"));
const credential = {
  apiVersion: "client.authentication.k8s.io/v1beta1",
  kind: "ExecCredential",
  status: { token: config.getCurrentUser()?.token },
};
process.stdout.write(JSON.stringify(credential));
