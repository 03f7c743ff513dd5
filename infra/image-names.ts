/** Registries that clouds can keep a copy of. */
export type Upstream = "docker-hub" | "quay" | "kubernetes";

const hosts: Readonly<Record<string, Upstream>> = {
  "docker.io": "docker-hub",
  "quay.io": "quay",
  "registry.k8s.io": "kubernetes",
};

/** Which registry an image is from, and its name there, with its tag if it has one; undefined for any other registry. */
export function upstreamOf(image: string): { readonly upstream: Upstream; readonly name: string } | undefined {
  const [host = "", ...rest] = image.split("/");
  const hasHost = rest.length > 0 && /[.:]|^localhost$/.test(host);
  const upstream = hasHost ? hosts[host] : "docker-hub";
  if (upstream === undefined) return undefined;
  const name = hasHost ? rest.join("/") : image;
  const isOfficial = upstream === "docker-hub" && !name.includes("/");
  return { upstream, name: isOfficial ? `library/${name}` : name };
}
