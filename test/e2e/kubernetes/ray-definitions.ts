import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import type { KubernetesApi, KubernetesObject } from "./api.ts";
import { waitUntilReady } from "./ready.ts";

/**
 * KubeRay's resource definitions, from a folder of theirs. As Helm does, it makes those that are not there and leaves
 * the others as they are.
 */
export async function installRayDefinitions(api: KubernetesApi, folder: string): Promise<void> {
  await Promise.all(
    readdirSync(folder).map(async (file) => {
      const definition = lightened(parse(readFileSync(join(folder, file), "utf8")));
      if ((await api.find(definition)) === undefined) await waitUntilReady(api, await api.create(definition));
    }),
  );
}

/** An API server works for many seconds on each schema of KubeRay: only the one that is used here is kept. */
function lightened(definition: KubernetesObject): KubernetesObject {
  const { names, versions } = definition.spec;
  const anything = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  const lightVersions = versions.map((version: { name: string }) =>
    names.kind === "RayCluster" && version.name === "v1" ? version : { ...version, schema: anything },
  );
  return { ...definition, spec: { ...definition.spec, versions: lightVersions } };
}
