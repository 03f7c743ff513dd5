import { resolve } from "node:path";
import * as pulumi from "@pulumi/pulumi";
import { describe, expect, test, vi } from "vitest";
import { furtherVariables } from "../../infra/settings/catalog-settings.ts";
import { readConfig, settingNames } from "../../service/config.ts";
import { type Deployed, deployed } from "../support/stack.ts";

const claimType = "kubernetes:core/v1:PersistentVolumeClaim";
const setType = "kubernetes:apps/v1:StatefulSet";
const deploymentType = "kubernetes:apps/v1:Deployment";
const image = "registry.example.com/catalog:1";
const withCatalog = (settings: object, more: object = {}) =>
  deployed("existing", { catalog: { image, ...settings }, ...more });

function podOf({ all }: Deployed) {
  const [workload] = [...all(setType), ...all(deploymentType)].filter(({ name }) => name === "catalog");
  return workload?.inputs.spec.template.spec;
}

/** Returns the variables of the catalog's process, including those of its secret. */
function environmentOf(stack: Deployed): Record<string, string> {
  const [container] = podOf(stack).containers;
  const set = container.env.map(({ name, value }: { name: string; value: string }) => [name, value]);
  return { ...Object.fromEntries(set), ...stack.one("kubernetes:core/v1:Secret", "catalog").inputs.stringData };
}

test("a catalog has its own namespace for its secrets and its account, without Ray clusters", async () => {
  const { resources, outputs } = await deployed("gke", { clientPrincipals: ["user:alice@example.com"] });
  const inside = resources.filter(({ inputs }) => inputs.metadata?.namespace === "lancedb-catalog");
  const types = new Set(inside.map(({ type }) => type.split(":").at(-1)));
  expect([...types].toSorted()).toEqual([
    ...["ConfigMap", "Deployment", "NetworkPolicy", "PersistentVolumeClaim", "PodDisruptionBudget", "Role"],
    ...["RoleBinding", "Secret", "Service", "ServiceAccount", "StatefulSet"],
  ]);
  const ofRay = resources.filter(({ inputs }) => inputs.metadata?.namespace === "lancedb");
  expect(ofRay.filter(({ type }) => /:(Secret|StatefulSet)$/.test(type))).toEqual([]);
  expect(outputs).toMatchObject({ namespace: "lancedb", catalogNamespace: "lancedb-catalog" });
});

describe("the catalog's pods", () => {
  test.each(["existing", "gke", "eks"])("have settings on %s that the catalog accepts", async (variant) => {
    const stack = await deployed(variant);
    expect(readConfig(environmentOf(stack))).toMatchObject({
      host: "0.0.0.0",
      port: 2333,
      dataDir: "/data",
      auth: { mode: "development" },
      bootstrapApiKey: expect.stringMatching(/^password-of-catalog-key-{25}$/),
      warehouse: expect.objectContaining({ scheme: String(stack.outputs.bucketUri).split(":")[0] }),
      unknownVariables: [],
    });
  });

  test("accept tokens of the configured issuer and the configured rate of requests", async () => {
    const oidc = {
      issuer: "https://login.example.com",
      audience: "tiltyard",
      jwksUrl: "https://login.example.com/keys",
    };
    const signIn = { clientId: "tiltyard-console", scope: "openid offline_access" };
    const stack = await withCatalog({ oidc: { ...oidc, ...signIn }, rateLimit: 200 });
    expect(readConfig(environmentOf(stack))).toMatchObject({ auth: { mode: "oidc", ...oidc, signIn }, rateLimit: 200 });
  });

  test("have each setting of the catalog either from the stack or from their environment", () => {
    const ofStack = [
      ...["ALLOW_INSECURE", "AUTH", "BOOTSTRAP_API_KEY", "DATABASE_URL", "DATA_DIR", "HOST", "ISOLATED_NAMESPACES"],
      ...["OIDC_AUDIENCE", "OIDC_CLIENT_ID", "OIDC_ISSUER", "OIDC_JWKS_URL", "OIDC_SCOPE", "PORT", "RATE_LIMIT"],
      ...["RAY_CLUSTERS", "RUNNER_API_KEY", "SECRETS_KEY_FILE", "VEND_CREDENTIALS", "VEND_S3_ROLE", "WAREHOUSE"],
    ].map((name) => `TILTYARD_${name}`);
    expect([...ofStack, ...furtherVariables].toSorted()).toEqual(settingNames.toSorted());
  });

  test.each(["sqlite", { url: "postgres://u:p@db/t" }])("start anew with another identity on %j", async (database) => {
    const identity = { "eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/catalog" };
    const stack = await withCatalog({ database }, { serviceAccountAnnotations: identity });
    const [workload] = [...stack.all(setType), ...stack.all(deploymentType)].filter(({ name }) => name === "catalog");
    expect(workload?.inputs.spec.template.metadata.annotations).toEqual(identity);
  });

  test("accept further settings of the catalog", async () => {
    const environment = { TILTYARD_DROP_RETENTION: "7d", TILTYARD_OPEN_JOBS_PER_PRINCIPAL: 50 };
    const stack = await withCatalog({ environment });
    expect(readConfig(environmentOf(stack))).toMatchObject({ dropRetentionMs: 7 * 86_400_000 });
    await expect(withCatalog({ environment: { TILTYARD_PORT: "80" } })).rejects.toThrow(/environment.*TILTYARD_PORT/);
  });

  test("warn that they use development authentication without an issuer", async () => {
    const warn = vi.spyOn(pulumi.log, "warn").mockResolvedValue();
    await withCatalog({});
    expect(warn).toHaveBeenCalledWith(expect.stringContaining("development authentication"), expect.anything());
    warn.mockClear();
    await withCatalog({ oidc: { issuer: "https://login.example.com", audience: "tiltyard" } });
    expect(warn).not.toHaveBeenCalledWith(expect.stringContaining("development authentication"), expect.anything());
    warn.mockRestore();
  });

  test("hand out credentials for tables when the settings say so", async () => {
    const stack = await deployed("gke", { catalog: { vendCredentials: true } });
    expect(readConfig(environmentOf(stack)).vending).toEqual({ s3Role: undefined });
    expect(readConfig(environmentOf(await deployed("gke"))).vending).toBeUndefined();
  });

  test.each([
    ["SQLite", {}, {}],
    ["Litestream", { litestream: { bucket: "s3://backups" } }, {}],
    ["PostgreSQL", { database: { url: "postgres://u:p@db/tiltyard" } }, {}],
  ])("need no right on their node or in the cluster: %s", async (_, settings, more) => {
    const pod = podOf(await withCatalog(settings, more));
    expect(pod).toMatchObject({
      serviceAccountName: "tiltyard-catalog",
      automountServiceAccountToken: false,
      // The catalog warns about unknown variables with its prefix, as those of its service are.
      enableServiceLinks: false,
      securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: "RuntimeDefault" } },
    });
    for (const container of [...pod.containers, ...(pod.initContainers ?? [])]) {
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        runAsNonRoot: true,
        capabilities: { drop: ["ALL"] },
      });
      expect(container.resources.limits.memory).toBeDefined();
      expect(container.resources.requests.cpu).toBeDefined();
      // Files are writable only in mounted volumes, and every volume must exist.
      const volumes = pod.volumes.map((volume: { name: string }) => volume.name);
      for (const mount of container.volumeMounts) expect([...volumes, "data"]).toContain(mount.name);
    }
  });

  test("have probes of liveness and readiness", async () => {
    const [container] = podOf(await withCatalog({})).containers;
    expect(container.livenessProbe.httpGet.path).toBe("/health/live");
    expect(container.readinessProbe.httpGet.path).toBe("/health/ready");
    expect(container.startupProbe.httpGet.path).toBe("/health/live");
  });

  test("run on core nodes where the stack has them, and before Ray's", async () => {
    const pod = podOf(await deployed("gke"));
    expect(pod).toMatchObject({
      nodeSelector: { "geneva.lancedb.com/core": "true" },
      priorityClassName: "tiltyard-control-lancedb",
    });
    expect(podOf(await withCatalog({})).nodeSelector).toEqual({});
  });

  test("get what an object store without identities asks for from a secret", async () => {
    const [container] = podOf(await withCatalog({ environmentSecret: "bucket-credentials" })).containers;
    expect(container.envFrom).toContainEqual({ secretRef: { name: "bucket-credentials" } });
  });

  test("mount the keys of the secrets of Functions from a secret, of which the state has only the name", async () => {
    const pod = podOf(await withCatalog({ secretsKeySecret: "catalog-keys" }));
    const [container] = pod.containers;
    expect(container.env).toContainEqual({ name: "TILTYARD_SECRETS_KEY_FILE", value: "/etc/tiltyard/secrets/keys" });
    const mount = { name: "secrets-keys", mountPath: "/etc/tiltyard/secrets", readOnly: true };
    expect(container.volumeMounts).toContainEqual(mount);
    const secret = { secretName: "catalog-keys", items: [{ key: "keys", path: "keys" }], defaultMode: 0o440 };
    expect(pod.volumes).toContainEqual({ name: "secrets-keys", secret });
    const { all } = await withCatalog({ secretsKeySecret: "catalog-keys" });
    expect(all("random:index/randomBytes:RandomBytes")).toEqual([]);
  });

  test("mount keys of the secrets of Functions that the stack generates, in the order of their ids", async () => {
    const { all, one } = await withCatalog({ secretsKeyIds: ["next", "first"] });
    expect(all("random:index/randomBytes:RandomBytes").map(({ inputs }) => inputs)).toEqual([
      { length: 32 },
      { length: 32 },
    ]);
    const { keys } = one("kubernetes:core/v1:Secret", "catalog-secrets-keys").inputs.stringData;
    expect(keys).toMatch(/^next:[A-Za-z0-9+/]{43}=\nfirst:[A-Za-z0-9+/]{43}=$/);
    const { volumes } = podOf(await withCatalog({}));
    const [items, defaultMode] = [[{ key: "keys", path: "keys" }], 0o440];
    const secret = { secretName: "catalog-secrets-keys", items, defaultMode };
    expect(volumes).toContainEqual({ name: "secrets-keys", secret });
  });

  test("mount the tables of a file bucket at its path, like clients", async () => {
    const stack = await withCatalog({ volumeClaim: "tables" }, { bucket: "file:///mnt/tables" });
    const pod = podOf(stack);
    expect(stack.outputs.tablesVolume).toEqual({ claim: "tables", path: "/mnt/tables" });
    expect(pod.volumes).toContainEqual({ name: "tables", persistentVolumeClaim: { claimName: "tables" } });
    expect(pod.containers[0].volumeMounts).toContainEqual({ name: "tables", mountPath: "/mnt/tables" });
  });
});

describe("a catalog on SQLite", () => {
  test("is one pod with a volume that outlives it", async () => {
    const { one } = await deployed("eks", { catalog: { volumeSize: "50Gi" } });
    const { spec } = one(setType).inputs;
    expect(spec.replicas).toBe(1);
    // With the default, the controller of stateful sets never replaces a pod that cannot start (end to end:
    // shared-stack/catalog-recovery.ts).
    expect(spec.podManagementPolicy).toBe("Parallel");
    // A separate claim can grow, in contrast to a template of the set.
    const claim = one(claimType);
    expect(claim.inputs).toMatchObject({
      metadata: { namespace: "lancedb-catalog" },
      spec: { storageClassName: "gp3-encrypted", resources: { requests: { storage: "50Gi" } } },
    });
    expect(spec.volumeClaimTemplates).toBeUndefined();
    expect(spec.template.spec.volumes).toContainEqual({
      name: "data",
      persistentVolumeClaim: { claimName: claim.inputs.metadata.name },
    });
  });

  test("keeps its volume against every change, until the settings release it", async () => {
    const kept = async (variant: string, settings: Record<string, unknown>) => {
      const claim = (await deployed(variant, settings)).one(claimType);
      return { protect: claim.protect, retainOnDelete: claim.retainOnDelete };
    };
    for (const variant of ["gke", "eks"]) {
      expect(await kept(variant, {})).toEqual({ protect: true, retainOnDelete: false });
      const released = { protect: false, retainOnDelete: false };
      expect(await kept(variant, { catalog: { keepVolume: false } })).toEqual(released);
      expect(await kept(variant, { deletionProtection: false })).toEqual(released);
    }
    const catalog = { image };
    expect(await kept("existing", { catalog })).toEqual({ protect: false, retainOnDelete: true });
    const released = { protect: false, retainOnDelete: false };
    expect(await kept("existing", { catalog: { ...catalog, keepVolume: false } })).toEqual(released);
  });

  test.each([
    ["eks", { encryptionKey: "arn:aws:kms:eu-central-1:123456789012:key/1234-abcd" }],
    ["gke", { "gcp:defaultLabels": { team: "ml" } }],
  ])("keeps its volume on %s when the storage class is replaced", async (variant, settings) => {
    const { one } = await deployed(variant, settings);
    const storageClass = one("kubernetes:storage.k8s.io/v1:StorageClass");
    const claim = one(claimType);
    expect(claim.inputs.spec.storageClassName).toBe(storageClass.inputs.metadata.name);
    // The engine deletes a class with a fixed name before it creates it again, together with all dependents.
    expect(claim.dependencies).not.toContain(storageClass.urn);
    // The class must exist before the namespace and be deleted after it.
    expect(one("kubernetes:core/v1:Namespace", "catalog").dependencies).toContain(storageClass.urn);
  });

  test("is copied to the bucket by Litestream, and restored before it starts when its volume is empty", async () => {
    const stack = await withCatalog({ litestream: { bucket: "s3://backups/tiltyard" } });
    const { initContainers, containers } = podOf(stack);
    const [restore, replicate] = initContainers;
    expect(restore.args).toEqual([
      ...["restore", "-config", "/etc/litestream/litestream.yml"],
      ...["-if-db-not-exists", "-if-replica-exists", "/data/catalog.sqlite"],
    ]);
    // Kubernetes stops a side car after the catalog, whose last changes it copies.
    expect(replicate).toMatchObject({
      args: ["replicate", "-config", "/etc/litestream/litestream.yml"],
      restartPolicy: "Always",
    });
    expect(containers).toHaveLength(1);
    const settings = JSON.parse(stack.one("kubernetes:core/v1:ConfigMap", "litestream").inputs.data["litestream.yml"]);
    // The variables are those of `environmentSecret`: test/e2e/litestream.test.ts.
    const store = { region: "$" + "{AWS_REGION}", endpoint: "$" + "{AWS_ENDPOINT_URL}" };
    expect(settings.dbs).toEqual([
      { path: "/data/catalog.sqlite", replica: { url: "s3://backups/tiltyard/litestream", ...store } },
    ]);
    expect(settings.snapshot).toEqual({ interval: "24h", retention: "336h" });
    expect(readConfig(environmentOf(stack)).database).toEqual({ kind: "sqlite", file: settings.dbs[0].path });
  });
});

describe("Litestream", () => {
  test("sets the region of the bucket, because no role may request it", async () => {
    const stack = await deployed("eks");
    const settings = JSON.parse(stack.one("kubernetes:core/v1:ConfigMap", "litestream").inputs.data["litestream.yml"]);
    const replica = { url: "s3://eks-backups-1234567/litestream", region: "eu-central-1" };
    expect(settings.dbs[0].replica).toMatchObject(replica);
  });

  test("writes to a bucket of its own on Google Cloud, which is not Ray's", async () => {
    const { all, one } = await deployed("gke");
    const members = all("gcp:storage/bucketIAMMember:BucketIAMMember").filter(
      ({ inputs }) => inputs.bucket === "gke-backups-1234567",
    );
    expect(members.map(({ inputs }) => inputs.member)).toEqual([
      "serviceAccount:gke-catalog@our-project.iam.gserviceaccount.com",
    ]);
    const settings = JSON.parse(one("kubernetes:core/v1:ConfigMap", "litestream").inputs.data["litestream.yml"]);
    expect(settings.dbs[0].replica).toEqual({ url: "gs://gke-backups-1234567/litestream" });
  });
});

describe("a catalog that moves from SQLite to PostgreSQL", () => {
  const url = "postgres://u:p@db:6000/t";

  test("stops the pod on SQLite, copies the volume, and starts the pods on PostgreSQL, in this order", async () => {
    const stack = await deployed("gke", { catalog: { database: { url }, moveFrom: "sqlite" } });
    const [set, job] = [stack.one(setType), stack.one("kubernetes:batch/v1:Job")];
    const [claim, deployment] = [stack.one(claimType), stack.one(deploymentType, "catalog")];
    expect(set.inputs.spec.replicas).toBe(0);
    expect(job.dependencies).toContain(set.urn);
    expect(deployment.dependencies).toContain(job.urn);
    expect(claim.protect).toBe(true);
    const { spec } = job.inputs.spec.template;
    const [container] = spec.containers;
    expect(container.args).toEqual(["move", "/data/catalog.sqlite"]);
    expect(container.envFrom).toEqual([{ secretRef: { name: "catalog" } }]);
    expect(spec.volumes).toContainEqual({ name: "data", persistentVolumeClaim: { claimName: "tiltyard-catalog" } });
    // A different image would replace the job, and a second copy would find a database that is not empty.
    expect(job.ignoreChanges).toEqual(["spec"]);
  });

  test("keeps the bucket of Litestream's copies, which nothing writes to", async () => {
    const stack = await deployed("gke", { catalog: { database: { url }, moveFrom: "sqlite", litestream: true } });
    expect(stack.all("gcp:storage/bucket:Bucket").map(({ name }) => name)).toContain("gke-backups");
    expect(stack.one(deploymentType, "catalog").inputs.spec.template.spec.initContainers).toBeUndefined();
  });
});

describe("a catalog on PostgreSQL", () => {
  test("is several pods, spread out, whose volume is nothing to keep", async () => {
    const stack = await withCatalog({ database: { url: "postgres://u:p@db:6000/t" }, replicas: 3 });
    const { spec } = stack.one(deploymentType, "catalog").inputs;
    expect(spec.replicas).toBe(3);
    expect(spec.strategy.rollingUpdate).toEqual({ maxSurge: 1, maxUnavailable: 0 });
    expect(spec.template.spec.topologySpreadConstraints).toHaveLength(2);
    expect(stack.all(setType)).toEqual([]);
    expect(environmentOf(stack).TILTYARD_DATABASE_URL).toBe("postgres://u:p@db:6000/t");
    const { egress } = stack.one("kubernetes:networking.k8s.io/v1:NetworkPolicy", "catalog").inputs.spec;
    expect(egress.flatMap((rule: { ports: { port: number }[] }) => rule.ports.map((each) => each.port))).toContain(
      6000,
    );
  });

  test("has a Cloud SQL instance that only its network can reach", async () => {
    const stack = await deployed("gke", { catalog: { database: "postgres" } });
    const instance = stack.one("gcp:sql/databaseInstance:DatabaseInstance");
    expect(instance.inputs).toMatchObject({
      deletionProtection: true,
      settings: {
        availabilityType: "REGIONAL",
        ipConfiguration: { ipv4Enabled: false, sslMode: "ENCRYPTED_ONLY" },
        backupConfiguration: { enabled: true, pointInTimeRecoveryEnabled: true },
      },
    });
    expect(instance.protect).toBe(true);
    expect(instance.dependencies).toContain(stack.one("gcp:servicenetworking/connection:Connection").urn);
    expect(environmentOf(stack).TILTYARD_DATABASE_URL).toMatch(
      /^postgres:\/\/tiltyard:password-of-gke-database-password-+@10.1.2.3:5432\/tiltyard\?sslmode=require$/,
    );
  });

  test("has an RDS instance that only the nodes can reach", async () => {
    const stack = await deployed("eks", { catalog: { database: "postgres", replicas: 1 } });
    expect(stack.one("aws:rds/instance:Instance").inputs).toMatchObject({
      storageEncrypted: true,
      publiclyAccessible: false,
      multiAz: false,
      deletionProtection: true,
      backupRetentionPeriod: 7,
    });
    expect(stack.one("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule").inputs).toMatchObject({
      referencedSecurityGroupId: "sg-cluster",
      fromPort: 5432,
    });
    expect(environmentOf(stack).TILTYARD_DATABASE_URL).toContain("@database.example.com:5432/tiltyard?sslmode=require");
  });

  test("has the major version of the settings, to which the next update moves the database", async () => {
    const on = async (variant: string, catalog: object) => {
      const { one } = await deployed(variant, { catalog: { database: "postgres", ...catalog } });
      return one(variant === "eks" ? "aws:rds/instance:Instance" : "gcp:sql/databaseInstance:DatabaseInstance").inputs;
    };
    expect((await on("eks", {})).engineVersion).toBe("17");
    expect(await on("eks", { postgresVersion: "18" })).toMatchObject({
      engineVersion: "18",
      allowMajorVersionUpgrade: true,
      applyImmediately: true,
    });
    expect((await on("gke", { postgresVersion: "18" })).databaseVersion).toBe("POSTGRES_18");
    await expect(on("gke", { postgresVersion: "9" })).rejects.toThrow(
      "catalog.postgresVersion: must be one of 17, 16, 18, in quotes",
    );
    await expect(deployed("existing", { catalog: { image, postgresVersion: "18" } })).rejects.toThrow(
      "postgresVersion",
    );
  });
});

describe("the image of the catalog", () => {
  test.each([
    ["gke", "europe-west4-docker.pkg.dev/our-project/lancedb-images-0a1b2c3d/tiltyard-catalog"],
    ["eks", "123456789012.dkr.ecr.eu-central-1.amazonaws.com/lancedb/tiltyard-catalog-0a1b2c3d"],
  ])("is built and pushed on %s, and runs by its digest", async (variant, name) => {
    const stack = await deployed(variant);
    const { inputs } = stack.one("docker-build:index:Image", "catalog-image");
    expect(inputs).toMatchObject({ push: true, buildOnPreview: false, platforms: ["linux/amd64"] });
    expect(inputs.tags).toEqual([expect.stringMatching(new RegExp(`^${name}:[0-9a-f]{16}-0a1b2c3d$`))]);
    expect(podOf(stack).containers[0].image).toBe(`${inputs.tags[0]}@sha256:0123`);
    // An absolute path would produce a different image on each machine and restart the catalog.
    expect(JSON.stringify(inputs)).not.toContain(process.cwd());
    expect(resolve(inputs.context.location)).toBe(process.cwd());
  });

  test("is taken from the settings instead, and nothing is built", async () => {
    const stack = await deployed("gke", { catalog: { image }, ray: { build: false } });
    expect(podOf(stack).containers[0].image).toBe(image);
    expect(stack.all("docker-build:index:Image")).toEqual([]);
    expect(stack.all("gcp:artifactregistry/repository:Repository")).toEqual([]);
  });
});

describe("the way to the catalog", () => {
  test("calls the issuer of its tokens and the keys of the issuer at their ports", async () => {
    const oidc = { issuer: "https://login.example.com:8443/realms/ml", audience: "tiltyard" };
    const jwksUrl = "http://keys.example.com/jwks";
    const { one } = await withCatalog({ oidc: { ...oidc, jwksUrl } });
    const { egress } = one("kubernetes:networking.k8s.io/v1:NetworkPolicy", "catalog").inputs.spec;
    const ports = egress.flatMap((rule: { ports: { port: number }[]; to?: unknown }) =>
      rule.to === undefined ? rule.ports.map((each) => each.port) : [],
    );
    expect(ports).toEqual([53, 53, 443, 8443, 80]);
  });

  test("is open to its namespace, to Ray and to those of the settings", async () => {
    const { one, outputs } = await withCatalog({ allowedNamespaces: ["notebooks"], egressPorts: [9000] });
    const { spec } = one("kubernetes:networking.k8s.io/v1:NetworkPolicy", "catalog").inputs;
    expect(spec.policyTypes).toEqual(["Ingress", "Egress"]);
    expect(spec.ingress).toEqual([
      {
        from: [
          { podSelector: {} },
          { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "lancedb" } } },
          { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "notebooks" } } },
        ],
        ports: [{ protocol: "TCP", port: 2333 }],
      },
    ]);
    const ports = spec.egress.flatMap((rule: { ports: { port: number }[] }) => rule.ports.map((each) => each.port));
    expect(new Set(ports)).toEqual(new Set([53, 443, 9000, 80, 988]));
    expect(outputs.catalogUrl).toBe("http://tiltyard-catalog.lancedb-catalog.svc:2333");
    expect(outputs).not.toHaveProperty("catalogPublicUrl");
  });

  test.each([
    ["gke", "gce", ["35.191.0.0/16", "130.211.0.0/22"]],
    ["eks", "alb", ["10.40.0.0/16"]],
    ["eks", "nginx", []],
  ])("is open to load balancers that call pods themselves: on %s %s", async (variant, className, ranges) => {
    const oidc = { issuer: "https://login.example.com", audience: "tiltyard" };
    const ingress = { host: "catalog.example.com", className, tlsSecret: "catalog-tls" };
    const { one } = await deployed(variant, { catalog: { oidc, ingress, allowedCidrs: ["203.0.113.0/24"] } });
    const [{ from }] = one("kubernetes:networking.k8s.io/v1:NetworkPolicy", "catalog").inputs.spec.ingress;
    const addresses = from.flatMap((each: { ipBlock?: { cidr: string } }) => each.ipBlock?.cidr ?? []);
    expect(addresses).toEqual([...ranges, "203.0.113.0/24"]);
  });

  test("is a forwarded port for makers of Ray clusters, and no secret of it is theirs", async () => {
    const { one } = await withCatalog({}, { clientPrincipals: ["user:alice"] });
    const role = one("kubernetes:rbac.authorization.k8s.io/v1:Role", "catalog-client").inputs;
    expect(role.metadata.namespace).toBe("lancedb-catalog");
    expect(role.rules).toEqual([
      { apiGroups: [""], resources: ["pods", "services"], verbs: ["get", "list"] },
      { apiGroups: [""], resources: ["pods/portforward"], verbs: ["get", "create"] },
    ]);
  });

  test("leads in from outside by TLS when it is opened", async () => {
    const oidc = { issuer: "https://login.example.com", audience: "tiltyard" };
    const ingress = { host: "catalog.example.com", className: "nginx", tlsSecret: "catalog.example.com" };
    const { one, outputs } = await withCatalog({ oidc, ingress });
    expect(one("kubernetes:networking.k8s.io/v1:Ingress").inputs.spec).toMatchObject({
      ingressClassName: "nginx",
      tls: [{ hosts: ["catalog.example.com"], secretName: "catalog.example.com" }],
    });
    expect(outputs.catalogPublicUrl).toBe("https://catalog.example.com");
  });

  test("finds one pod at least while nodes are drained", async () => {
    const budget = (await withCatalog({})).one("kubernetes:policy/v1:PodDisruptionBudget", "catalog");
    expect(budget.inputs.spec).toEqual({
      maxUnavailable: 1,
      selector: { matchLabels: { "app.kubernetes.io/name": "tiltyard-catalog" } },
      unhealthyPodEvictionPolicy: "AlwaysAllow",
    });
  });
});

test("a stack without a catalog has none of it, and says so by its outputs", async () => {
  const { resources, outputs } = await deployed("gke", { catalog: { enabled: false } });
  expect(resources.filter((each) => each.name.startsWith("catalog"))).toEqual([]);
  expect(Object.keys(outputs).filter((name) => name.startsWith("catalog"))).toEqual([]);
});
