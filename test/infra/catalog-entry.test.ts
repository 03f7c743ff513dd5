import { describe, expect, test } from "vitest";
import { parseStackConfig } from "../../infra/config.ts";
import { type Deployed, deployed, type Settings, settingsOf, testDate } from "../support/stack.ts";

const oidc = { issuer: "https://login.example.com", audience: "tiltyard" };
const image = "registry.example.com/catalog:1";
const host = "catalog.example.com";
const gateway = { host, name: "public", namespace: "gateways" };
const withCatalog = (variant: string, catalog: Settings) => deployed(variant, { catalog: { image, oidc, ...catalog } });
const problems = (variant: string, catalog: Settings) => () =>
  parseStackConfig(settingsOf(variant, { catalog: { image, oidc, ...catalog } }), testDate);
const ingressType = "kubernetes:networking.k8s.io/v1:Ingress";
const serviceType = "kubernetes:core/v1:Service";
const policyType = "kubernetes:networking.k8s.io/v1:NetworkPolicy";

function environmentOf({ one }: Deployed): Record<string, string> {
  const [container] = one("kubernetes:apps/v1:StatefulSet", "catalog").inputs.spec.template.spec.containers;
  return Object.fromEntries(container.env.map(({ name, value }: { name: string; value: string }) => [name, value]));
}

describe("the ingress of a catalog", () => {
  test.each(["gce", "gce-internal"])("names the class %s as GKE's controller reads it", async (className) => {
    const { one } = await withCatalog("gke", { ingress: { host, className, tlsSecret: "tls" } });
    const { metadata, spec } = one(ingressType).inputs;
    expect(metadata.annotations["kubernetes.io/ingress.class"]).toBe(className);
    expect(spec).not.toHaveProperty("ingressClassName");
  });

  test("reaches pods from an AWS load balancer, with the certificate of ACM", async () => {
    const { one } = await withCatalog("eks", { ingress: { host, className: "alb" } });
    const { metadata, spec } = one(ingressType).inputs;
    expect(metadata.annotations).toMatchObject({
      "alb.ingress.kubernetes.io/target-type": "ip",
      "alb.ingress.kubernetes.io/listen-ports": '[{"HTTPS":443}]',
    });
    expect(spec).toMatchObject({ ingressClassName: "alb", tls: [{ hosts: [host] }] });
  });

  test.each([
    ["eks", "alb", "alb.ingress.kubernetes.io/load-balancer-attributes", "idle_timeout.timeout_seconds=3600"],
    ["existing", "nginx", "nginx.ingress.kubernetes.io/proxy-read-timeout", "3600"],
    ["existing", "nginx", "nginx.ingress.kubernetes.io/proxy-send-timeout", "3600"],
  ])("lets requests last an hour on %s with %s: %s", async (variant, className, annotation, value) => {
    const { one } = await withCatalog(variant, { ingress: { host, className, tlsSecret: "tls" } });
    expect(one(ingressType).inputs.metadata.annotations).toHaveProperty([annotation], value);
  });

  test.each(["gce", "gce-internal"])("lets requests last an hour on GKE with %s", async (className) => {
    const { one } = await withCatalog("gke", { ingress: { host, className, tlsSecret: "tls" } });
    const { metadata, spec } = one("kubernetes:cloud.google.com/v1:BackendConfig").inputs;
    expect(spec).toEqual({ timeoutSec: 3600 });
    expect(one(serviceType, "catalog").inputs.metadata.annotations).toHaveProperty(
      ["cloud.google.com/backend-config"],
      JSON.stringify({ default: metadata.name }),
    );
  });

  test("replaces a pod behind a load balancer of AWS when the next one receives requests", async () => {
    const label = "elbv2.k8s.aws/pod-readiness-gate-inject";
    const labelsOf = async (className: string) => {
      const { one } = await withCatalog("eks", { ingress: { host, className, tlsSecret: "tls" } });
      return one("kubernetes:core/v1:Namespace", "catalog").inputs.metadata.labels;
    };
    expect(await labelsOf("alb")).toHaveProperty([label], "enabled");
    expect(await labelsOf("nginx")).not.toHaveProperty([label]);
  });

  test("has the annotations of the settings in place of its own", async () => {
    const annotations = { "alb.ingress.kubernetes.io/target-type": "instance" };
    const { one } = await withCatalog("eks", { ingress: { host, className: "alb", annotations } });
    expect(one(ingressType).inputs.metadata.annotations).toMatchObject(annotations);
  });

  test.each(["gce", "gce-internal"])(
    "reaches pods from Google's load balancers in a shared VPC with the class %s",
    async (className) => {
      const { one } = await withCatalog("gke", { ingress: { host, className, tlsSecret: "tls" } });
      expect(one(serviceType, "catalog").inputs.metadata.annotations).toMatchObject({
        "cloud.google.com/neg": '{"ingress":true}',
      });
    },
  );

  test.each([
    ["gke", { className: "gce" }, "2"],
    ["eks", { className: "alb" }, "1"],
    ["existing-eks", { className: "alb" }, "1"],
    ["gke", { className: "gce-internal" }, undefined],
    ["existing", { className: "nginx" }, undefined],
  ])("determines the trusted proxies on %s with %j: %s", async (variant, ingress, proxies) => {
    const stack = await withCatalog(variant, { ingress: { host, tlsSecret: "tls", ...ingress } });
    expect(environmentOf(stack).TILTYARD_TRUSTED_PROXIES).toBe(proxies);
  });

  test("trusts no proxy whose header the settings change, and as many as the environment names", async () => {
    const annotations = {
      "alb.ingress.kubernetes.io/load-balancer-attributes": "routing.http.xff_header_processing.mode=preserve",
    };
    const ingress = { host, className: "alb" };
    const changed = await withCatalog("eks", { ingress: { ...ingress, annotations } });
    expect(environmentOf(changed)).not.toHaveProperty("TILTYARD_TRUSTED_PROXIES");
    const named = await withCatalog("eks", { ingress, environment: { TILTYARD_TRUSTED_PROXIES: 2 } });
    expect(environmentOf(named).TILTYARD_TRUSTED_PROXIES).toBe("2");
  });

  test("needs a certificate", () => {
    const message = "catalog.ingress.tlsSecret: is required, or an annotation that names a certificate of the cloud";
    expect(problems("existing", { ingress: { host, className: "nginx" } })).toThrow(message);
    expect(problems("gke", { ingress: { host, className: "gce" } })).toThrow(message);
    const annotations = { "networking.gke.io/managed-certificates": "catalog" };
    expect(problems("gke", { ingress: { host, className: "gce", annotations } })).not.toThrow();
  });
});

describe("the route of a catalog", () => {
  test("attaches to a gateway that exists, whose pods may call the catalog", async () => {
    const { one, outputs } = await withCatalog("existing", { gateway: { ...gateway, sectionName: "https" } });
    expect(one("kubernetes:gateway.networking.k8s.io/v1:HTTPRoute").inputs.spec).toEqual({
      parentRefs: [{ name: "public", namespace: "gateways", sectionName: "https" }],
      hostnames: [host],
      rules: [{ backendRefs: [{ name: "tiltyard-catalog", port: 2333 }] }],
    });
    expect(outputs.catalogPublicUrl).toBe(`https://${host}`);
    const [{ from }] = one(policyType, "catalog").inputs.spec.ingress;
    expect(from).toContainEqual({ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "gateways" } } });
  });

  test("has a health check that the catalog answers, requests of an hour, and Gateway API, on GKE", async () => {
    const { one } = await withCatalog("gke", { gateway });
    expect(one("gcp:container/cluster:Cluster").inputs.gatewayApiConfig).toEqual({ channel: "CHANNEL_STANDARD" });
    expect(one("kubernetes:networking.gke.io/v1:HealthCheckPolicy").inputs.spec).toMatchObject({
      default: { config: { httpHealthCheck: { requestPath: "/health/ready" } } },
      targetRef: { kind: "Service", name: "tiltyard-catalog" },
    });
    expect(one("kubernetes:networking.gke.io/v1:GCPBackendPolicy").inputs.spec).toEqual({
      default: { timeoutSec: 3600 },
      targetRef: { group: "", kind: "Service", name: "tiltyard-catalog" },
    });
    const [{ from }] = one(policyType, "catalog").inputs.spec.ingress;
    expect(from).toContainEqual({ ipBlock: { cidr: "35.191.0.0/16" } });
  });

  test("needs an issuer of tokens, and replaces an ingress", () => {
    expect(problems("existing", { gateway, oidc: undefined })).toThrow("catalog.oidc: is required");
    const ingress = { host, className: "nginx", tlsSecret: "tls" };
    expect(problems("existing", { gateway, ingress })).toThrow("catalog.gateway: replaces catalog.ingress");
  });
});
