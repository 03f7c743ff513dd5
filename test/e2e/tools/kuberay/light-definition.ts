import { parse } from "yaml";

/**
 * A resource definition of KubeRay as the tests install it, in JSON, which is read at once: its YAML takes half a
 * second. An API server works for many seconds on each schema: only the one that is used here is kept.
 */
export function lightDefinition(yaml: string): string {
  const definition = parse(yaml);
  const { names, versions } = definition.spec;
  const anything = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  const lightVersions = versions.map((version: { name: string }) =>
    names.kind === "RayCluster" && version.name === "v1" ? version : { ...version, schema: anything },
  );
  return JSON.stringify({ ...definition, spec: { ...definition.spec, versions: lightVersions } });
}
