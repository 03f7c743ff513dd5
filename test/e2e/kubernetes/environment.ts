import type { KubernetesApi, KubernetesObject } from "./api.ts";

/** Returns all variables of a container, including those of its secrets. */
export async function environmentOf(
  api: KubernetesApi,
  { env = [], envFrom = [] }: KubernetesObject["spec"],
  namespace: string,
): Promise<Record<string, string>> {
  const secret = async (name: string) => {
    const { data } = await api.get("v1", "Secret", name, namespace);
    return Object.fromEntries(
      Object.entries<string>(data).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]),
    );
  };
  const whole = envFrom.map(({ secretRef }: { secretRef: { name: string } }) => secret(secretRef.name));
  const single = env.map(async ({ name, value, valueFrom }: KubernetesObject) => {
    const from = valueFrom?.secretKeyRef;
    return { [name as unknown as string]: from === undefined ? (value ?? "") : (await secret(from.name))[from.key] };
  });
  return Object.assign({}, ...(await Promise.all([...whole, ...single])));
}
