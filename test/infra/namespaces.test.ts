import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { type Deployed, deployed } from "../support/stack.ts";

const image = "registry.example.com/catalog:1";
const withDatabase = { image, oidc: { issuer: "https://login.example.com", audience: "tiltyard" } };
const database = { url: "postgres://u:p@database.example.com/tiltyard" };
const teams = [{ name: "vision", clientPrincipals: ["group:vision"] }];

/** The objects of a kind in a namespace. */
function objectsIn({ resources }: Deployed, kind: RegExp, namespace: string) {
  return resources.filter(({ type, inputs }) => kind.test(type) && inputs.metadata?.namespace === namespace);
}

function policiesIn(stack: Deployed, namespace: string) {
  return objectsIn(stack, /:NetworkPolicy$/, namespace).map(({ inputs }) => inputs.spec);
}

/** The ports to which the policies of pods with this name let them connect. */
function portsReachedBy(pod: string, policies: ReturnType<typeof policiesIn>): ReadonlySet<number> {
  const key = "app.kubernetes.io/name";
  const own = policies.filter(({ podSelector: { matchLabels, matchExpressions = [] } }) =>
    [[matchLabels?.[key]], ...matchExpressions.map((each: { values: string[] }) => each.values)].flat().includes(pod),
  );
  const rules: { ports: { port: number }[] }[] = own.flatMap(({ egress = [] }) => egress);
  return new Set(rules.flatMap(({ ports }) => ports.map(({ port }) => port)));
}

test("namespaces of a stack deny the connections that no policy allows", async () => {
  const stack = await deployed("existing", { teams });
  const denied = ["lancedb", "lancedb-vision", "lancedb-catalog"].map((namespace) =>
    policiesIn(stack, namespace)
      .filter(({ podSelector }) => Object.keys(podSelector).length === 0)
      .map(({ policyTypes, ingress, egress }) => [policyTypes, ingress, egress]),
  );
  const nothing = undefined;
  expect(denied).toEqual([
    [[["Ingress"], nothing, nothing]],
    [[["Ingress"], nothing, nothing]],
    [[["Ingress", "Egress"], nothing, nothing]],
  ]);
});

test("pods next to the catalog have the connections that they need where all others are denied", async () => {
  const ingress = { host: "catalog.example.com", className: "nginx", tlsSecret: "tls" };
  const stack = await deployed("existing", { catalog: { ...withDatabase, database, moveFrom: "sqlite", ingress } });
  const policies = policiesIn(stack, "lancedb-catalog");
  const pods = objectsIn(stack, /:(StatefulSet|Deployment|Job)$/, "lancedb-catalog").map(
    ({ inputs }) => inputs.spec.template.metadata.labels["app.kubernetes.io/name"],
  );
  expect(new Set(pods)).toEqual(new Set(["tiltyard-catalog", "tiltyard-catalog-move", "tiltyard-runner"]));
  for (const pod of pods) {
    const reached = portsReachedBy(pod, policies);
    expect(reached.has(53), pod).toBe(true);
    expect(reached.has(pod === "tiltyard-runner" ? 2333 : 5432), pod).toBe(true);
  }
  // cert-manager answers the issuer of a certificate from a pod next to the catalog.
  const solver = policies.find(({ podSelector }) => podSelector.matchLabels?.["acme.cert-manager.io/http01-solver"]);
  expect(solver?.ingress).toEqual([{ ports: [{ protocol: "TCP", port: 8089 }] }]);
  const monitored = await deployed("existing", { monitoring: { collector: "prometheus-operator" } });
  const operator = policiesIn(monitored, "lancedb").find(
    ({ podSelector }) => podSelector.matchLabels?.["app.kubernetes.io/name"] === "kuberay-operator",
  );
  expect(operator?.ingress[0].ports).toEqual([{ protocol: "TCP", port: 8080 }]);
});

test("the pod of the runbook that restores the catalog connects to the bucket like the catalog itself", async () => {
  const { metadata } = parse(readFileSync("examples/restore-pod.yaml", "utf8"));
  const policies = policiesIn(
    await deployed("existing", { catalog: { image, egressPorts: [9000] } }),
    metadata.namespace,
  );
  const pod = metadata.labels?.["app.kubernetes.io/name"] ?? "a pod without a name";
  const reached = portsReachedBy(pod, policies);
  expect([...reached].toSorted()).toEqual([...portsReachedBy("tiltyard-catalog", policies)].toSorted());
  expect([53, 443, 9000].every((port) => reached.has(port))).toBe(true);
});

test("a stateful set names its pods by a service without an address", async () => {
  const stack = await deployed("existing");
  const { spec } = stack.one("kubernetes:apps/v1:StatefulSet", "catalog").inputs;
  const services = objectsIn(stack, /:Service$/, "lancedb-catalog").map(({ inputs }) => inputs);
  const headless = services.find(({ metadata }) => metadata.name === spec.serviceName);
  expect(headless?.spec).toMatchObject({ clusterIP: "None", selector: spec.selector.matchLabels });
});

test.each([
  ["existing", ["catalog", "ray", "runner"]],
  ["gke", ["catalog", "ray", "runner"]],
  ["eks", ["catalog", "cluster", "ray", "runner"]],
])(
  "objects of a stack on %s have the labels that tools expect, except what a person may have created",
  async (variant, components) => {
    const { resources } = await deployed(variant, variant === "existing" ? { teams } : {});
    const objects = resources.filter(({ type, inputs }) => type.startsWith("kubernetes:") && inputs.metadata);
    const [adopted, own] = [true, false].map((isAdopted) =>
      objects.filter(({ type }) => /:(Namespace|PersistentVolumeClaim)$/.test(type) === isAdopted),
    );
    expect(own?.length).toBeGreaterThan(20);
    const definitions = /:CustomResourceDefinition$/;
    const labelled = (own ?? []).filter(({ type }) => !definitions.test(type));
    for (const { inputs, urn } of labelled)
      expect(inputs.metadata.labels, urn).toMatchObject({
        "app.kubernetes.io/name": expect.stringMatching(/^tiltyard-/),
        "app.kubernetes.io/instance": "organization.tiltyard.test",
        "app.kubernetes.io/version": expect.stringMatching(/^\d+\.\d+\.\d+$/),
        "app.kubernetes.io/part-of": "tiltyard",
        "app.kubernetes.io/managed-by": "pulumi",
      });
    const found = new Set(labelled.map(({ inputs }) => inputs.metadata.labels["app.kubernetes.io/component"]));
    expect([...found].toSorted()).toEqual(components);
    for (const { inputs } of adopted ?? [])
      expect(inputs.metadata.labels).not.toHaveProperty("app.kubernetes.io/managed-by");
  },
);

test("selectors have no label that changes with a version or a stack", async () => {
  const { resources } = await deployed("existing", { teams });
  const selectors = resources.flatMap(({ inputs: { spec } = {} }) => [
    ...Object.keys(spec?.selector?.matchLabels ?? {}),
    ...Object.keys(spec?.podSelector?.matchLabels ?? {}),
  ]);
  expect(selectors).toContain("app.kubernetes.io/name");
  const recommended = selectors.filter((label) => label.startsWith("app.kubernetes.io/"));
  expect(new Set(recommended)).toEqual(new Set(["app.kubernetes.io/name"]));
});

test("a runner that hangs is restarted, by the file that its arguments name", async () => {
  const { spec } = (await deployed("existing")).one("kubernetes:apps/v1:Deployment", "runner").inputs;
  const [{ args, livenessProbe, volumeMounts }] = spec.template.spec.containers;
  const file = args[args.indexOf("--alive-file") + 1];
  expect(livenessProbe.exec.command.join(" ")).toContain(`find ${file} -mmin`);
  expect(volumeMounts.map(({ mountPath }: { mountPath: string }) => mountPath)).toContain("/tmp");
  expect(spec.strategy).toEqual({ type: "Recreate" });
});
