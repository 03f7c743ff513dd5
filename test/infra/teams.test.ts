import { describe, expect, test } from "vitest";
import { asPod, type Call, callsOn, callsOnObject, mayBecome, mayCall, overTls } from "../support/iam.ts";
import { refusals } from "../support/refusals.ts";
import { deployed, type Settings } from "../support/stack.ts";

const quota = { cpu: "64", memory: "256Gi", gpus: 4 };
const teamsOf = (...principals: readonly string[]) => [
  { name: "vision", clientPrincipals: [principals[0]], quota },
  { name: "speech", namespace: "speech-ray", clientPrincipals: [principals[1]] },
];
const arn = (name: string) => `arn:aws:iam::123456789012:role/${name}`;
const settings: Readonly<Record<string, Settings>> = {
  existing: { teams: teamsOf("group:vision", "group:speech") },
  "existing-gke": { teams: teamsOf("group:vision", "group:speech") },
  "existing-eks": { teams: teamsOf("group:vision", "group:speech") },
  gke: { teams: teamsOf("group:vision@example.com", "user:bob@example.com") },
  eks: { teams: teamsOf(arn("vision"), arn("speech")) },
};
const stacks = Object.fromEntries(Object.entries(settings).map(([variant, its]) => [variant, deployed(variant, its)]));
const stackOn = (variant: string) => stacks[variant] ?? deployed(variant, settings[variant]);

const role = "kubernetes:rbac.authorization.k8s.io/v1:Role";
const roleBinding = "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding";
const networkPolicy = "kubernetes:networking.k8s.io/v1:NetworkPolicy";

describe.each(Object.keys(settings))("a team on %s", (variant) => {
  test("has a namespace with the account of its pods, whose rights end there", async () => {
    const { one, outputs, resources } = await stackOn(variant);
    expect(one("kubernetes:core/v1:Namespace", "ray-vision").inputs.metadata.name).toBe("lancedb-vision");
    expect(one("kubernetes:core/v1:Namespace", "ray-speech").inputs.metadata.name).toBe("speech-ray");
    // A privileged pod could read the secrets of other teams on its node.
    const level = { "pod-security.kubernetes.io/enforce": "baseline" };
    expect(one("kubernetes:core/v1:Namespace", "ray-vision").inputs.metadata.labels).toMatchObject(level);
    expect(one("kubernetes:core/v1:ServiceAccount", "ray-vision").inputs.metadata).toMatchObject({
      namespace: "lancedb-vision",
      name: "geneva-service-account",
    });
    const rights = one(role, "ray-vision").inputs;
    expect(rights.metadata).toMatchObject({ name: "geneva-service-account-role", namespace: "lancedb-vision" });
    expect(rights.rules).toEqual(one("kubernetes:rbac.authorization.k8s.io/v1:ClusterRole", "ray").inputs.rules);
    const { subjects } = one("kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding", "ray").inputs;
    expect(subjects.map(({ namespace }: { namespace: string }) => namespace)).toEqual(["lancedb"]);
    expect(outputs.teams).toMatchObject({
      vision: { namespace: "lancedb-vision", bucketUri: `${outputs.bucketUri}/vision` },
      speech: { namespace: "speech-ray" },
    });
    expect(refusals(resources)).toEqual([]);
  });

  test("has resources with names of its own, also if its name is that of another team with a suffix", async () => {
    const suffixes = ["class", "cluster", "heads", "identity", "logs", "objects", "pods", "principal", "quota", "role"];
    const names = ["a", ...suffixes, ...suffixes.map((suffix) => `a-${suffix}`)];
    const clientPrincipals = { gke: ["group:a@example.com"], eks: [arn("a")] }[variant] ?? ["group:a"];
    const teams = names.map((name) => ({ name, clientPrincipals, quota }));
    const { resources } = await deployed(variant, { teams, quota, kueue: { source: "helm" }, rayLogs: true });
    const urns = resources.map(({ urn }) => urn);
    expect(urns.filter((urn, index) => urns.indexOf(urn) !== index)).toEqual([]);
  });

  test("has identities of the cloud, also with the longest name", async () => {
    const clientPrincipals = { gke: ["group:a@example.com"], eks: [arn("a")] }[variant] ?? ["group:a"];
    const teams = [{ name: "a-team-of-20-letters", clientPrincipals }];
    const { resources, all } = await deployed(variant, { teams });
    expect(refusals(resources)).toEqual([]);
    for (const { inputs } of all("gcp:serviceaccount/account:Account"))
      expect(inputs.accountId).toMatch(/^[a-z][-a-z0-9]{4,28}[a-z0-9]$/);
  });

  test("only lets the named principals create Ray clusters, in its namespace", async () => {
    const { one } = await stackOn(variant);
    const { metadata, subjects } = one(roleBinding, "ray-vision-client").inputs;
    const named = {
      gke: "gke-client-vision@our-project.iam.gserviceaccount.com",
      eks: "tiltyard:vision",
    }[variant];
    expect(metadata.namespace).toBe("lancedb-vision");
    expect(subjects.map(({ name }: { name: string }) => name)).toEqual([named ?? "vision"]);
    // Teams also read the class of heads and call the catalog.
    for (const [type, name] of [
      ["kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding", "ray-client-class"],
      [roleBinding, "catalog-client"],
    ] as const)
      expect(one(type, name).inputs.subjects).toEqual(expect.arrayContaining(subjects));
  });

  test("is reached by no other pod of Ray where an operator outside of the stack is in the namespace of Ray", async () => {
    const { one } = await deployed(variant, {
      ...settings[variant],
      operator: { source: "none", namespace: "lancedb" },
    });
    const [{ from }] = one(networkPolicy, "ray-vision-pods").inputs.spec.ingress;
    expect(from.at(-1).podSelector.matchExpressions).toEqual([{ key: "ray.io/cluster", operator: "DoesNotExist" }]);
  });

  test("asks for no more than its quota, and what asks for nothing gets a little", async () => {
    const { one, all } = await stackOn(variant);
    expect(all("kubernetes:core/v1:ResourceQuota")).toHaveLength(1);
    expect(one("kubernetes:core/v1:ResourceQuota", "ray-vision-quota").inputs).toMatchObject({
      metadata: { namespace: "lancedb-vision" },
      spec: { hard: { "requests.cpu": "64", "requests.memory": "256Gi", "requests.nvidia.com/gpu": "4" } },
    });
    const [limit] = one("kubernetes:core/v1:LimitRange", "ray-vision-quota").inputs.spec.limits;
    expect(limit).toMatchObject({ type: "Container", defaultRequest: { cpu: "100m" } });
  });

  test("is reached by the operator, and not by other teams; its jobs reach the catalog", async () => {
    const { one } = await stackOn(variant);
    const of = (namespace: string) => ({ matchLabels: { "kubernetes.io/metadata.name": namespace } });
    const [{ from }] = one(networkPolicy, "ray-vision-pods").inputs.spec.ingress;
    expect(from).toEqual([
      { podSelector: rayPods },
      {
        namespaceSelector: of("lancedb"),
        podSelector: {
          matchLabels: { "app.kubernetes.io/name": "kuberay-operator" },
          matchExpressions: [{ key: "ray.io/cluster", operator: "DoesNotExist" }],
        },
      },
    ]);
    expect(one("kubernetes:helm.sh/v3:Release", "operator").inputs.values.watchNamespace).toEqual([
      ...["lancedb", "lancedb-vision", "speech-ray"],
    ]);
    for (const name of ["ray-vision", "ray-speech"])
      expect(one("kubernetes:helm.sh/v3:Release", "operator").dependencies).toContain(
        one("kubernetes:core/v1:Namespace", name).urn,
      );
    const [catalog] = one(networkPolicy, "catalog").inputs.spec.ingress;
    expect(catalog.from).toEqual(
      expect.arrayContaining([{ namespaceSelector: of("lancedb-vision") }, { namespaceSelector: of("speech-ray") }]),
    );
  });
});

const rayPods = { matchExpressions: [{ key: "ray.io/cluster", operator: "Exists" }] };

describe("the bucket of teams on AWS", () => {
  test.each([
    ["eks", "eks-bucket-1234567", {}],
    ["existing-eks", "existing-bucket-1234567", {}],
    ["eks", "ours/lance", { bucket: "s3://ours/lance" }],
  ])("is used on %s in %s by each team in its own folder only", async (variant, bucket, more) => {
    const stack = await deployed(variant, { ...settings[variant], ...more });
    const prefix = variant === "eks" ? "eks" : "existing";
    const roles = { vision: [`${prefix}-ray-vision`], speech: [`${prefix}-ray-speech`] };
    if (variant === "eks") {
      roles.vision.push("eks-client-vision");
      roles.speech.push("eks-client-speech");
    }
    for (const [team, its] of Object.entries(roles))
      for (const name of its) {
        for (const call of callsOnObject(`arn:aws:s3:::${bucket}/${team}/films.lance/1`))
          expect(mayCall(stack, name, call)).toBe(true);
        const other = team === "vision" ? "speech" : "vision";
        for (const beside of [other, `${team}-more`, `x/${team}`, "films.lance"])
          for (const call of callsOnObject(`arn:aws:s3:::${bucket}/${beside}/1`))
            expect(mayCall(stack, name, call)).toBe(false);
        // Without the right to list the bucket, S3 would report missing objects as forbidden.
        for (const call of callsOn(`arn:aws:s3:::${bucket.split("/")[0]}`, overTls, "s3:ListBucket"))
          expect(mayCall(stack, name, call)).toBe(true);
      }
    for (const name of [`${prefix}-ray`, `${prefix}-catalog`])
      for (const call of callsOnObject(`arn:aws:s3:::${bucket}/vision/films.lance/1`))
        expect(mayCall(stack, name, call)).toBe(true);
  });

  test("is for pods of the team's account, and for the named principals", async () => {
    const stack = await stackOn("eks");
    const issuer = "oidc.eks.eu-central-1.amazonaws.com/id/ABC";
    const pod = (namespace: string) => asPod(issuer, namespace, "geneva-service-account");
    expect(mayBecome(stack, "eks-ray-vision", pod("lancedb-vision"))).toBe(true);
    for (const other of ["lancedb", "speech-ray"]) expect(mayBecome(stack, "eks-ray-vision", pod(other))).toBe(false);
    expect(mayBecome(stack, "eks-ray", pod("lancedb-vision"))).toBe(false);
    const user = (name: string): Call => ({ action: "sts:AssumeRole", principal: arn(name) });
    expect(mayBecome(stack, "eks-client-vision", user("vision"))).toBe(true);
    expect(mayBecome(stack, "eks-client-vision", user("speech"))).toBe(false);
    expect(mayBecome(stack, "eks-client-vision", user("ml-engineers"))).toBe(false);
  });

  test("has a role that is not an administrator of the cluster", async () => {
    const { one, all, outputs } = await stackOn("eks");
    const entry = one("aws:eks/accessEntry:AccessEntry", "client-vision").inputs;
    expect(entry).toMatchObject({ type: "STANDARD", kubernetesGroups: ["tiltyard:vision"] });
    const admins = all("aws:eks/accessPolicyAssociation:AccessPolicyAssociation").map(({ name }) => name);
    expect(admins).toEqual(["eks-client"]);
    expect(one("aws:iam/role:Role", "client-vision").inputs.name).toBe("geneva-client-role-vision");
    const { vision } = outputs.teams as Record<string, { roleName: string }>;
    expect(vision?.roleName).toBe(arn("geneva-client-role-vision"));
  });
});

describe("the bucket of teams on Google Cloud", () => {
  test.each([
    ["gke", "gke", undefined, "vision/"],
    ["existing-gke", "existing", undefined, "vision/"],
    ["gke", "gke", "gs://ours/lance", "lance/vision/"],
  ])("is used on %s by each team in its own managed folder only", async (variant, prefix, bucket, folder) => {
    const { all, one } = await deployed(variant, { ...settings[variant], bucket });
    const grants = all("gcp:storage/managedFolderIamMember:ManagedFolderIamMember").map(({ inputs }) => inputs);
    const account = (name: string) => `serviceAccount:${name}@our-project.iam.gserviceaccount.com`;
    const ofTeam = grants.filter(({ managedFolder }) => managedFolder === folder);
    expect(ofTeam.map(({ member }) => member).sort()).toEqual(
      [`${prefix}-ray-vision`, ...(variant === "gke" ? ["gke-client-vision"] : [])].map(account).sort(),
    );
    expect(ofTeam.every(({ role: granted }) => granted === "roles/storage.objectAdmin")).toBe(true);
    const whole = all("gcp:storage/bucketIAMMember:BucketIAMMember").map(({ inputs }) => inputs.member);
    for (const name of ["ray-vision", "ray-speech", "client-vision"])
      expect(whole).not.toContain(account(`${prefix}-${name}`));
    const { member } = one("gcp:serviceaccount/iAMMember:IAMMember", "ray-vision-identity").inputs;
    expect(member).toBe("serviceAccount:our-project.svc.id.goog[lancedb-vision/geneva-service-account]");
  });
});

describe("queues", () => {
  const kueue = { source: "helm" };
  const withQuotas = { ...settings.existing, quota, teams: [{ name: "vision", quota: { cpu: "8", memory: "32Gi" } }] };

  test("admit as much as the quota of their namespace, by a Kueue that starts before them", async () => {
    const { one, outputs } = await deployed("existing", { ...withQuotas, kueue });
    const chart = one("kubernetes:helm.sh/v3:Release", "ray-kueue");
    expect(chart.inputs).toMatchObject({ chart: "oci://registry.k8s.io/kueue/charts/kueue", version: "0.19.2" });
    const type = (kind: string) => `kubernetes:kueue.x-k8s.io/v1beta2:${kind}`;
    const whole = one(type("ClusterQueue"), "lancedb-vision-cluster");
    expect(whole.dependencies).toContain(chart.urn);
    expect(whole.inputs.spec.namespaceSelector.matchLabels).toEqual({
      "kubernetes.io/metadata.name": "lancedb-vision",
    });
    const [group] = whole.inputs.spec.resourceGroups;
    expect(group.coveredResources).toEqual(["cpu", "memory", "nvidia.com/gpu"]);
    expect(group.flavors[0].resources.map(({ nominalQuota }: { nominalQuota: string }) => nominalQuota)).toEqual([
      ...["8", "32Gi", "0"],
    ]);
    expect(group.flavors[0].name).toBe(one(type("ResourceFlavor"), "lancedb-vision-flavor").inputs.metadata.name);
    expect(one(type("LocalQueue"), "lancedb-vision-local").inputs).toMatchObject({
      metadata: { name: outputs.queue, namespace: "lancedb-vision" },
      spec: { clusterQueue: whole.inputs.metadata.name },
    });
    expect(one(type("LocalQueue"), "lancedb-local").inputs.metadata.namespace).toBe("lancedb");
  });

  test("are reached by the control plane of GKE, which by default calls no other ports of nodes than 443 and 10250", async () => {
    const firewallType = "gcp:compute/firewall:Firewall";
    const { one } = await deployed("gke", { quota, kueue });
    const firewall = one(firewallType, "webhooks");
    expect(firewall.inputs).toMatchObject({
      ...{ direction: "INGRESS", sourceRanges: ["10.49.0.0/28"] },
      allows: [{ protocol: "tcp", ports: ["9443"] }],
    });
    const { inputs } = one("kubernetes:helm.sh/v3:Release", "ray-kueue");
    expect(inputs.values.managerConfig.controllerManagerConfigYaml).toContain("port: 9443");
    expect(one("gcp:container/cluster:Cluster").dependencies).toContain(firewall.urn);
    expect((await deployed("gke", { quota })).all(firewallType)).toEqual([]);
  });

  test("are created for an existing Kueue", async () => {
    const { all } = await deployed("existing", { ...withQuotas, kueue: { source: "none" } });
    expect(all("kubernetes:helm.sh/v3:Release").map(({ name }) => name)).toEqual(["ray-operator"]);
    expect(all("kubernetes:kueue.x-k8s.io/v1beta2:LocalQueue")).toHaveLength(2);
  });
});

describe("teams that cannot be", () => {
  test.each<[string, Settings, string]>([
    ["existing", { teams: [{ name: "a" }, { name: "a" }] }, "teams.1.name: is the name of another team: a"],
    [
      "existing",
      { teams: [{ name: "a-client" }, { name: "a" }] },
      "teams.0.name: must not be that of another team with -client: a-client",
    ],
    ["existing", { teams: [{ name: "catalog" }] }, "teams.0.namespace: is already in use: lancedb-catalog"],
    ["existing", { teams: [{ name: "a", namespace: "lancedb" }] }, "teams.0.namespace: is already in use: lancedb"],
    ["existing", { teams: [{ name: "A" }] }, "teams.0.name: must be at most 20 lower-case letters"],
    [
      "existing",
      { teams: [{ name: "a", clientPrincipals: ["bob"] }] },
      "teams.0.clientPrincipals.0: must be user:NAME",
    ],
    ["eks", { teams: [{ name: "a" }] }, "teams.0.clientPrincipals: name at least one principal that may assume"],
    [
      "gke",
      { teams: [{ name: "a", serviceAccountAnnotations: {} }] },
      "teams.0: has no field serviceAccountAnnotations",
    ],
    ["existing", { teams: [{ name: "a" }], kueue: { source: "helm" } }, "teams.0.quota: is required with kueue"],
    ["existing", { kueue: { source: "helm" } }, "quota: is required with kueue"],
    ...["existing", "existing-eks", "eks", "gke"].map((variant): [string, Settings, string] => [
      variant,
      { ...settings[variant], operator: { source: "none" } },
      "operator.namespace: is required with teams",
    ]),
  ])("are refused with a sentence: %s %j", async (variant, given, message) => {
    await expect(deployed(variant, given)).rejects.toThrow(message);
  });
});

describe("jobs of the catalog", () => {
  const settings = {
    teams: [{ name: "vision", quota: { cpu: "8", memory: "8Gi" } }],
    quota: { cpu: "8", memory: "8Gi" },
  };

  test("run in the namespace and the queue of the team that owns the table", async () => {
    const { one } = await deployed("existing", { ...settings, kueue: { source: "none" } });
    const file = JSON.parse(one("kubernetes:core/v1:ConfigMap", "runner").inputs.data["runner.yaml"]);
    expect(file.teams).toEqual({ vision: { namespace: "lancedb-vision", queue: "ray" } });
    const [own, ofTeam] = ["runner", "runner-vision"].map((name) => one(role, name).inputs);
    expect(ofTeam.metadata).toMatchObject({ name: "tiltyard-runner", namespace: "lancedb-vision" });
    expect(ofTeam.rules).toEqual(own.rules);
  });

  test("have Geneva's records of their own in the catalog", async () => {
    const { one } = await deployed("existing", settings);
    const [{ env }] = one("kubernetes:apps/v1:StatefulSet").inputs.spec.template.spec.containers;
    expect(env).toContainEqual({ name: "TILTYARD_ISOLATED_NAMESPACES", value: "vision" });
  });
});
