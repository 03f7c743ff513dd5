/** A stand-in for `gke-gcloud-auth-plugin`: it prints the credential of the actual cluster. */
import { readCurrentContext } from "../kubernetes/kubeconfig.ts";

const { token } = readCurrentContext(process.env.TILTYARD_E2E_KUBECONFIG);
const credential = {
  apiVersion: "client.authentication.k8s.io/v1beta1",
  kind: "ExecCredential",
  status: { token },
};
process.stdout.write(JSON.stringify(credential));
