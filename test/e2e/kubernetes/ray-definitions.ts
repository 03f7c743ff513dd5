import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { KubernetesApi } from "./api.ts";
import { waitUntilReady } from "./ready.ts";

/**
 * KubeRay's resource definitions, from a folder of theirs. As Helm does, it makes those that are not there and leaves
 * the others as they are.
 */
export async function installRayDefinitions(api: KubernetesApi, folder: string): Promise<void> {
  await Promise.all(
    readdirSync(folder).map(async (file) => {
      const definition = JSON.parse(readFileSync(join(folder, file), "utf8"));
      if ((await api.find(definition)) === undefined) await waitUntilReady(api, await api.create(definition));
    }),
  );
}
