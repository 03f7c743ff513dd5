import { ownValue } from "@tiltyard/protocol";
/** The registries that clouds can cache. */
export type Upstream = "docker-hub" | "quay" | "kubernetes";

const hosts: Readonly<Record<string, Upstream>> = {
  "docker.io": "docker-hub",
  "quay.io": "quay",
  "registry.k8s.io": "kubernetes",
};

/** Returns the registry of an image and its name there, including a tag; undefined for any other registry. */
export function upstreamOf(image: string): { readonly upstream: Upstream; readonly name: string } | undefined {
  const [host = "", ...rest] = image.split("/");
  const hasHost = rest.length > 0 && /[.:]|^localhost$/.test(host);
  const upstream = hasHost ? ownValue(hosts, host) : "docker-hub";
  if (upstream === undefined) return undefined;
  const name = hasHost ? rest.join("/") : image;
  const isOfficial = upstream === "docker-hub" && !name.includes("/");
  return { upstream, name: isOfficial ? `library/${name}` : name };
}
