import * as kubernetes from "@pulumi/kubernetes";
import { catalogName, catalogPort } from "@tiltyard/platform";
import { ownValue } from "@tiltyard/protocol";
import type { CatalogSettings } from "../../settings/catalog-settings.ts";
import { type CatalogDeps, type Child, metadataOf } from "./catalog-deps.ts";

const healthPath = "/health/ready";

/**
 * The annotation with the class of GKE's controller, which has no IngressClass and ignores an ingress that specifies a
 * class.
 */
const classAnnotation = "kubernetes.io/ingress.class";
const gceClasses: readonly string[] = ["gce", "gce-internal"];

/** The annotations that a controller needs to serve the catalog, by ingress class. */
const annotationsOf: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  gce: { [classAnnotation]: "gce", "kubernetes.io/ingress.allow-http": "false" },
  "gce-internal": { [classAnnotation]: "gce-internal", "kubernetes.io/ingress.allow-http": "false" },
  alb: {
    // The service of the catalog has no node ports.
    "alb.ingress.kubernetes.io/target-type": "ip",
    "alb.ingress.kubernetes.io/listen-ports": '[{"HTTPS":443}]',
    "alb.ingress.kubernetes.io/healthcheck-path": healthPath,
  },
  nginx: {
    // The catalog itself limits bodies, while the controller would reject rows of more than a megabyte.
    "nginx.ingress.kubernetes.io/proxy-body-size": "0",
    "nginx.ingress.kubernetes.io/proxy-request-buffering": "off",
  },
};

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
  new kubernetes.networking.v1.Ingress(
    name,
    {
      metadata: { ...metadataOf(deps), annotations: { ...ownValue(annotationsOf, className), ...annotations } },
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
  new kubernetes.apiextensions.CustomResource(
    `${name}-health-check`,
    {
      apiVersion: "networking.gke.io/v1",
      kind: "HealthCheckPolicy",
      metadata,
      spec: {
        default: { config: { type: "HTTP", httpHealthCheck: { requestPath: healthPath } } },
        targetRef: { group: "", kind: "Service", name: catalogName },
      },
    },
    child,
  );
}
