import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import * as random from "@pulumi/random";
import { catalogLabels } from "@tiltyard/platform";
import { documentationPage } from "@tiltyard/protocol";
import type { CreationCheck } from "../cluster-provider.ts";
import { stackId, stackLabel } from "../ownership.ts";
import type { CatalogDeps, Child } from "./catalog-deps.ts";
import { secretsKeysFile } from "./catalog-pod.ts";

/** The annotation of the Secret with the ids of its keys, which the next `up` compares with its own. */
const idsAnnotation = "tiltyard.dev/secrets-key-ids";

/** Creates the keys of the secrets of Functions. Different ids create a new secret and thus new pods. */
export function createSecretsKeys(
  name: string,
  { cluster, namespace, settings: { secretsKeyIds } }: CatalogDeps,
  parent: pulumi.Resource,
  child: Child,
): pulumi.Output<string> {
  const lines = secretsKeyIds.map((id) => {
    const { base64 } = new random.RandomBytes(`${name}-secrets-key-${id}`, { length: 32 }, { parent });
    return pulumi.interpolate`${id}:${base64}`;
  });
  const stringData = { [secretsKeysFile]: pulumi.secret(pulumi.all(lines).apply((each) => each.join("\n"))) };
  const metadata = { namespace, labels: catalogLabels, annotations: { [idsAnnotation]: secretsKeyIds.join() } };
  const check = cluster.kubernetes.beforeCreate(`${name}-secrets-keys`, refuseLostKey(secretsKeyIds));
  return new kubernetes.core.v1.Secret(
    `${name}-secrets-keys`,
    { metadata, type: "Opaque", stringData },
    { ...child, hooks: { beforeCreate: [check], beforeUpdate: [check] } },
  ).metadata.name;
}

/**
 * Returns a check that refuses to delete the key with which the catalog encrypts: the state and the cluster have the only
 * copies, and the catalog encrypts anew when it starts with another first key.
 */
export function refuseLostKey(ids: readonly string[]): CreationCheck {
  return async (live) => {
    const labels = { ...catalogLabels, [stackLabel]: stackId() };
    const selector = Object.entries(labels).map(([label, value]) => `${label}=${value}`);
    for (const { metadata } of await live.list("v1", "Secret", selector.join())) {
      const [first] = String(metadata.annotations?.[idsAnnotation] ?? "").split(",");
      if (first === undefined || first === "" || ids.includes(first)) continue;
      throw new Error(
        `catalog.secretsKeyIds: must contain ${first}, with which the secrets of Functions are encrypted: its deletion ` +
          `would lose them. Add the new id first: ${documentationPage("settings")}`,
      );
    }
  };
}
