import { parseFileParameters, parseParameters } from "@tiltyard/platform";
import { describe, expect, test } from "vitest";
import { parse as parseYaml } from "yaml";
import { fromStackOutputs } from "../../client/stack-outputs.ts";

describe("the parameters of a Ray cluster", () => {
  test("have the defaults that the documentation lists", () => {
    expect(parseParameters({ name: "a", workerGroups: [{}, { name: "gpu", numGpus: 1 }] })).toMatchObject({
      namespace: "lancedb",
      configMethod: "LOCAL",
      usePortforwarding: true,
      serviceAccount: "geneva-service-account",
      headGroup: { numCpus: 4, memory: "8Gi" },
      workerGroups: [
        {
          name: "worker",
          numCpus: 4,
          memory: "8Gi",
          numGpus: 0,
          minReplicas: 0,
          maxReplicas: 100,
          idleTimeoutSeconds: 60,
        },
        {
          name: "gpu",
          numCpus: 8,
          memory: "16Gi",
          numGpus: 1,
          minReplicas: 0,
          maxReplicas: 100,
          idleTimeoutSeconds: 60,
        },
      ],
    });
  });

  test("have the names of the requirement in a file", () => {
    const content = parseYaml(`
      name: embeddings
      namespace: features
      cluster_name: lancedb
      config_method: EKS_AUTH
      region: us-east-1
      role_name: geneva-client-role
      use_portforwarding: false
      head_group: {service_account: ray-pods, num_cpus: 2, memory: 4Gi, node_selector: {"example.com/my_head": "true"}}
      worker_groups:
        - {name: cpu, min_replicas: 2, service_account: ray-pods, num_cpus: 8, memory: 17179869184, node_selector: {a: b}}
    `);
    expect(parseFileParameters(content)).toMatchObject({
      name: "embeddings",
      clusterName: "lancedb",
      configMethod: "EKS_AUTH",
      roleName: "geneva-client-role",
      usePortforwarding: false,
      headGroup: {
        serviceAccount: "ray-pods",
        numCpus: 2,
        memory: "4Gi",
        nodeSelector: { "example.com/my_head": "true" },
      },
      workerGroups: [{ name: "cpu", minReplicas: 2, numCpus: 8, memory: "17179869184", nodeSelector: { a: "b" } }],
    });
  });

  test("may be in layers, of which the last one wins, however each spells them", () => {
    const parameters = parseFileParameters(
      { name: "a", kubeContext: "of the stack", configMethod: "IN_CLUSTER" },
      { kube_context: "of the file", namespace: "ours" },
      { kubeContext: "of the command line" },
    );
    expect(parameters).toMatchObject({
      kubeContext: "of the command line",
      configMethod: "IN_CLUSTER",
      namespace: "ours",
    });
  });

  test.each(["node_selectors", "nodeSelectors"])("leave labels as they are, in a file and from a stack: %s", (name) => {
    const selectors = { head: { "example.com/my_head": "true" }, workerCpu: {}, workerGpu: {} };
    expect(parseFileParameters({ name: "a", [name]: selectors }).nodeSelectors).toEqual(selectors);
  });

  test("reports all invalid parameters at once, with the names of the input", () => {
    const content = {
      name: "My Cluster",
      config_method: "EKS_AUTH",
      ray_version: "2.42.0",
      head_group: { memory: "lots", cpus: 3 },
      worker_groups: [
        { name: "a", min_replicas: 5, max_replicas: 2 },
        { name: "a", num_gpus: -1 },
      ],
    };
    let message = "";
    try {
      parseFileParameters(content);
    } catch (error) {
      message = String(error);
    }
    for (const problem of [
      "name: must be at most 40 lower-case letters",
      "ray_version: must be 2.43 or later",
      "head_group.memory: must be a quantity such as 8Gi",
      "head_group: has no parameter cpus",
      "worker_groups.0.max_replicas: must not be less than minReplicas",
      "worker_groups.1.num_gpus: ",
    ])
      expect(message).toContain(problem);
  });

  test.each([
    [{ name: "a", configMethod: "EKS_AUTH" }, /clusterName: is required.*region: is required/s],
    [{ name: "a", workerGroups: [{ name: "x" }, { name: "x" }] }, /workerGroups.1.name: is the name of another group/],
    [{ name: "a", headGroup: { memory: "100Mi" } }, /headGroup.memory: is too little for Ray/],
    [{ name: "a", volumes: [{ claim: "c", path: "tables" }] }, /volumes.0.path: must be the path of a folder/],
    [{ name: "a", volumes: [{ claim: "c", path: "/dev/shm" }] }, /volumes.0.path: must not be one of Ray's/],
    [
      { name: "a", volumes: ["c", "d"].map((claim) => ({ claim, path: "/t" })) },
      /volumes.1.path: is the path of another volume/,
    ],
    [{}, /name: /],
    [[], /the parameters: /],
    [{ leaseSeconds: 29 }, "leaseSeconds"],
    [{ leaseSeconds: 2_592_001 }, "leaseSeconds"],
  ])("refuse %j", (options, problem) => {
    expect(() => parseParameters(options)).toThrow(problem);
  });

  test("place pods with Kubernetes' own names and rules", () => {
    const content = parseYaml(`
      name: a
      image_pull_secrets: [registry]
      worker_groups:
        - name: spot
          ephemeral_storage: 50Gi
          tolerations: [{key: spot, effect: NoExecute, tolerationSeconds: 60}, {operator: Exists}]
          affinity:
            nodeAffinity:
              preferredDuringSchedulingIgnoredDuringExecution:
                - weight: 1
                  preference: {matchExpressions: [{key: my_zone, operator: In, values: [a]}]}
          topology_spread_constraints:
            - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {my_app: b}}}
    `);
    const { workerGroups } = parseFileParameters(content);
    expect(workerGroups[0]?.tolerations).toEqual([
      { key: "spot", operator: "Equal", effect: "NoExecute", tolerationSeconds: 60 },
      { operator: "Exists" },
    ]);
    expect(workerGroups[0]?.affinity).toEqual(content.worker_groups[0].affinity);
    expect(workerGroups[0]?.topologySpreadConstraints).toEqual(content.worker_groups[0].topology_spread_constraints);
    const invalid = {
      name: "a",
      head_group: { image_pull_secrets: ["Registry"], ephemeral_storage: "50" },
      worker_groups: [
        {
          tolerations: [
            { value: "a" },
            { key: "b", operator: "Exists", value: "c" },
            { key: "d", tolerationSeconds: 1 },
          ],
          affinity: { nodeAfinity: {}, podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{}] } },
          topologySpreadConstraints: [{ maxSkew: 0, topologyKey: "zone", whenUnsatisfiable: "Never" }],
        },
      ],
    };
    const problems = [
      "head_group.image_pull_secrets.0: must be at most 253 lower-case letters, digits and dashes",
      "head_group.ephemeral_storage: must be a quantity of at least 1Gi, such as 50Gi",
      "worker_groups.0.tolerations.0.key: is required unless operator is Exists",
      "worker_groups.0.tolerations.1.value: must be absent with the operator Exists",
      "worker_groups.0.tolerations.2.tolerationSeconds: needs the effect NoExecute",
      "worker_groups.0.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution.0.topologyKey: ",
      "worker_groups.0.affinity: has no parameter nodeAfinity",
      "worker_groups.0.topology_spread_constraints.0.maxSkew: ",
      "worker_groups.0.topology_spread_constraints.0.whenUnsatisfiable: ",
    ];
    for (const problem of problems) expect(() => parseFileParameters(invalid)).toThrow(problem);
  });

  test("are read from a stack except for the name", () => {
    const selector = (key: string) => ({ [`geneva.lancedb.com/${key}`]: "true" });
    const outputs = {
      variant: "eks",
      clusterName: "lancedb",
      configMethod: "EKS_AUTH",
      region: "us-east-1",
      roleName: "arn:aws:iam::123456789012:role/geneva-client-role",
      namespace: "features",
      serviceAccount: "ray-pods",
      headNodeSelector: selector("h"),
      workerCpuNodeSelector: selector("c"),
      workerGpuNodeSelector: selector("g"),
      rayVersion: "2.52.0",
      rayImage: "example.com/ray:1",
      bucketUri: "s3://tables",
      headPriorityClass: "heads",
      tablesVolume: { claim: "tables", path: "/mnt/tables" },
      catalogUrl: "http://tiltyard-catalog.features.svc:2333",
    };
    expect(parseParameters({ name: "a", ...fromStackOutputs(outputs) })).toMatchObject({
      namespace: "features",
      configMethod: "EKS_AUTH",
      serviceAccount: "ray-pods",
      rayVersion: "2.52.0",
      image: "example.com/ray:1",
      headPriorityClass: "heads",
      volumes: [{ claim: "tables", path: "/mnt/tables" }],
      catalogUrl: "http://tiltyard-catalog.features.svc:2333",
      nodeSelectors: { head: selector("h"), workerCpu: selector("c"), workerGpu: selector("g") },
    });
    expect(() => fromStackOutputs({ variant: "eks" })).toThrow(/not the outputs of a Tiltyard stack:\n {2}clusterName/);
  });
});
