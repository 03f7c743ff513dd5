import * as kubernetes from "@pulumi/kubernetes";
import { catalogName, catalogPort } from "@tiltyard/platform";
import { ownValue } from "@tiltyard/protocol";
import type { CatalogSettings } from "../../settings/catalog-settings.ts";
import { type CatalogDeps, type Child, metadataOf } from "./catalog-deps.ts";

const healthPath = "/health/ready";

/**
 * The longest change of rows, in seconds. By default, Google's load balancers end each request after 30 seconds, and others
 * a connection without data after 60. A request without its client commits nothing.
 */
const longestRequestSeconds = 3600;

/**
 * The annotation with the class of GKE's controller, which has no IngressClass and ignores an ingress that specifies a
 * class.
 */
const classAnnotation = "kubernetes.io/ingress.class";
const gceClasses: readonly string[] = ["gce", "gce-internal"];

/** The parts of a catalog that depend on the controller of its ingress. */
interface Controller {
  /** The annotations of the ingress. */
  readonly annotations: Readonly<Record<string, string>>;
  /** The annotations of the service. */
  readonly serviceAnnotations?: Readonly<Record<string, string>>;
  /** The labels of the catalog's namespace. */
  readonly namespaceLabels?: Readonly<Record<string, string>>;
  /** The number of addresses that the load balancer adds to `X-Forwarded-For`; undefined where it is not certain. */
  readonly trustedProxies?: number;
}

const serviceAnnotations = {
  // Load balancers of Google call pods by endpoint groups. GKE adds this annotation itself, but not in a shared VPC and not
  // with Calico's network policies, where its controller refuses a service without node ports.
  "cloud.google.com/neg": '{"ingress":true}',
  "cloud.google.com/backend-config": JSON.stringify({ default: catalogName }),
};

/** The controllers by ingress class. */
const controllers: Readonly<Record<string, Controller>> = {
  // Google adds the address of the client and then its own.
  gce: { annotations: gceAnnotations("gce"), serviceAnnotations, trustedProxies: 2 },
  "gce-internal": { annotations: gceAnnotations("gce-internal"), serviceAnnotations },
  alb: {
    annotations: {
      // The service of the catalog has no node ports.
      "alb.ingress.kubernetes.io/target-type": "ip",
      "alb.ingress.kubernetes.io/listen-ports": '[{"HTTPS":443}]',
      "alb.ingress.kubernetes.io/healthcheck-path": healthPath,
      "alb.ingress.kubernetes.io/load-balancer-attributes": `idle_timeout.timeout_seconds=${longestRequestSeconds}`,
    },
    // A new pod is ready when the load balancer has found it healthy. GKE's controller needs no label for that.
    namespaceLabels: { "elbv2.k8s.aws/pod-readiness-gate-inject": "enabled" },
    trustedProxies: 1,
  },
  nginx: {
    annotations: {
      // The catalog itself limits bodies, while the controller would reject rows of more than a megabyte.
      "nginx.ingress.kubernetes.io/proxy-body-size": "0",
      "nginx.ingress.kubernetes.io/proxy-request-buffering": "off",
      "nginx.ingress.kubernetes.io/proxy-read-timeout": String(longestRequestSeconds),
      "nginx.ingress.kubernetes.io/proxy-send-timeout": String(longestRequestSeconds),
    },
  },
};

function gceAnnotations(className: string) {
  return { [classAnnotation]: className, "kubernetes.io/ingress.allow-http": "false" };
}

function controllerOf({ ingress }: CatalogEntrySettings): Controller | undefined {
  return ingress && ownValue(controllers, ingress.className);
}

type CatalogEntrySettings = Pick<CatalogSettings, "ingress">;

/** Returns the annotations of the catalog's service. */
export function serviceAnnotationsOf(settings: CatalogEntrySettings): Readonly<Record<string, string>> {
  return controllerOf(settings)?.serviceAnnotations ?? {};
}

/** Returns the labels of the catalog's namespace. */
export function namespaceLabelsOf(settings: CatalogEntrySettings): Readonly<Record<string, string>> {
  return controllerOf(settings)?.namespaceLabels ?? {};
}

/** The attribute of a load balancer on AWS that determines `X-Forwarded-For`. */
const forwardingAttribute = "routing.http.xff_header_processing.mode";

/** Returns the number of proxies that add to `X-Forwarded-For`; undefined where it is not certain. */
export function trustedProxiesOf(settings: CatalogEntrySettings): number | undefined {
  const annotations = Object.values(settings.ingress?.annotations ?? {});
  const isDefault = annotations.every((text) => !text.includes(forwardingAttribute));
  return isDefault ? controllerOf(settings)?.trustedProxies : undefined;
}

/** Creates the ingress or the route for access from outside the cluster. */
export function createCatalogEntry(name: string, deps: CatalogDeps, child: Child): void {
  const { ingress, gateway } = deps.settings;
  if (ingress !== undefined) createIngress(name, deps, ingress, child);
  if (gateway !== undefined) createRoute(name, deps, gateway, child);
}

function createIngress(
  name: string,
  deps: CatalogDeps,
  { className, host, tlsSecret, annotations }: NonNullable<CatalogSettings["ingress"]>,
  child: Child,
): void {
  const backend = { service: { name: catalogName, port: { name: "http" } } };
  const isGce = gceClasses.includes(className);
  // GKE's controller looks up the secret of each entry, and fails at one without a secret.
  const hasTls = tlsSecret !== undefined || !isGce;
  if (isGce)
    new kubernetes.apiextensions.CustomResource(
      `${name}-backend`,
      {
        apiVersion: "cloud.google.com/v1",
        kind: "BackendConfig",
        metadata: metadataOf(deps),
        spec: { timeoutSec: longestRequestSeconds },
      },
      child,
    );
  new kubernetes.networking.v1.Ingress(
    name,
    {
      metadata: { ...metadataOf(deps), annotations: { ...controllerOf(deps.settings)?.annotations, ...annotations } },
      spec: {
        ...(!isGce && { ingressClassName: className }),
        ...(hasTls && { tls: [{ hosts: [host], ...(tlsSecret !== undefined && { secretName: tlsSecret }) }] }),
        rules: [{ host, http: { paths: [{ path: "/", pathType: "Prefix", backend }] } }],
      },
    },
    child,
  );
}

/** Creates a route of Gateway API for an existing gateway. */
function createRoute(
  name: string,
  deps: CatalogDeps,
  { host, name: gatewayName, namespace, sectionName }: NonNullable<CatalogSettings["gateway"]>,
  child: Child,
): void {
  const metadata = metadataOf(deps);
  new kubernetes.apiextensions.CustomResource(
    `${name}-route`,
    {
      apiVersion: "gateway.networking.k8s.io/v1",
      kind: "HTTPRoute",
      metadata,
      spec: {
        parentRefs: [{ name: gatewayName, namespace, ...(sectionName !== undefined && { sectionName }) }],
        hostnames: [host],
        rules: [{ backendRefs: [{ name: catalogName, port: catalogPort }] }],
      },
    },
    child,
  );
  if (!deps.cluster.services.hasGkeGateways) return;
  const targetRef = { group: "", kind: "Service", name: catalogName };
  const policies = {
    HealthCheckPolicy: {
      suffix: "health-check",
      settings: { config: { type: "HTTP", httpHealthCheck: { requestPath: healthPath } } },
    },
    GCPBackendPolicy: { suffix: "backend", settings: { timeoutSec: longestRequestSeconds } },
  };
  for (const [kind, { suffix, settings }] of Object.entries(policies))
    new kubernetes.apiextensions.CustomResource(
      `${name}-${suffix}`,
      { apiVersion: "networking.gke.io/v1", kind, metadata, spec: { default: settings, targetRef } },
      child,
    );
}
