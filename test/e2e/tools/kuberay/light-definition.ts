import { parse } from "yaml";

/**
 * Returns a resource definition of KubeRay for the tests as JSON, because parsing its YAML needs half a second. Only
 * the used schema is kept, because an API server needs many seconds for each.
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
