import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { KubernetesApi, KubernetesObject } from "./api.ts";

/** Returns all variables of a container, including those of its secrets. */
export async function environmentOf(
  api: KubernetesApi,
  { env = [], envFrom = [] }: KubernetesObject["spec"],
  namespace: string,
): Promise<Record<string, string>> {
  const secret = (name: string) => valuesOf(api, name, namespace);
  const whole = envFrom.map(({ secretRef }: { secretRef: { name: string } }) => secret(secretRef.name));
  const single = env.map(async ({ name, value, valueFrom }: KubernetesObject) => {
    const from = valueFrom?.secretKeyRef;
    return { [name as unknown as string]: from === undefined ? (value ?? "") : (await secret(from.name))[from.key] };
  });
  return Object.assign({}, ...(await Promise.all([...whole, ...single])));
}

/** Writes the files of the secrets that the first container of a pod mounts, like its kubelet, at local paths. */
export async function writeMountedSecrets(
  api: KubernetesApi,
  { containers: [container], volumes }: KubernetesObject["spec"],
  namespace: string,
  localPath: (path: string) => string,
): Promise<void> {
  for (const { name, mountPath } of container.volumeMounts) {
    const volume = volumes.find((each: { readonly name: string }) => each.name === name);
    if (volume?.secret === undefined) continue;
    const values = await valuesOf(api, volume.secret.secretName, namespace);
    for (const { key, path } of volume.secret.items) {
      const file = localPath(`${mountPath}/${path}`);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, values[key] ?? "", { mode: 0o600 });
    }
  }
}

async function valuesOf(api: KubernetesApi, secret: string, namespace: string): Promise<Record<string, string>> {
  const { data } = await api.get("v1", "Secret", secret, namespace);
  return Object.fromEntries(
    Object.entries<string>(data).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]),
  );
}
