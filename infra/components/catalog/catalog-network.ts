import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { catalogLabels, catalogName, catalogPort } from "@tiltyard/platform";
import { ownValue } from "@tiltyard/protocol";
import { hasSqliteVolume } from "../../settings/catalog-settings.ts";
import { collectorNamespaces } from "../../settings/monitoring-settings.ts";
import { podsOf, tcp, toNameServers } from "../network-peers.ts";
import { type CatalogDeps, type Child, metadataOf, podsServiceName } from "./catalog-deps.ts";
import { createCatalogEntry, serviceAnnotationsOf } from "./catalog-entry.ts";
import { moveLabels } from "./catalog-move.ts";
import { litestreamPort } from "./litestream.ts";

/** The key of the addresses of a cloud's gateways. */
const gatewayClass = "gateway";
const postgresPort = 5432;
/** The ports of the schemes of an issuer. */
const webPorts: Readonly<Record<string, number>> = { "http:": 80, "https:": 443 };
/** The metadata servers that provide the identity of pods on Google's and Amazon's nodes. */
const metadataServers = ["169.254.169.254/32", "169.254.170.23/32", "169.254.169.252/32"];

const nameLabel = "app.kubernetes.io/name";
/** The name of the pod in examples/restore-pod.yaml. */
const restoreName = `${catalogName}-restore`;

/** The pods with which cert-manager proves to an issuer that the host of an ingress is the catalog's. */
const solver = { labels: { "acme.cert-manager.io/http01-solver": "true" }, port: 8089 };

/**
 * Creates the catalog's services, its entry from outside, and network policies for its callers and its outgoing
 * connections.
 */
export function createCatalogNetwork(
  name: string,
  deps: CatalogDeps,
  databaseUrl: pulumi.Input<string> | undefined,
  child: Child,
): void {
  new kubernetes.core.v1.Service(
    name,
    {
      metadata: { ...metadataOf(deps), annotations: serviceAnnotationsOf(deps.settings) },
      spec: { selector: catalogLabels, ports: [{ name: "http", port: catalogPort, targetPort: "http" }] },
    },
    child,
  );
  // A stateful set names its pods by a service without an address.
  if (hasSqliteVolume(deps.settings))
    new kubernetes.core.v1.Service(
      `${name}-pods`,
      {
        metadata: { ...metadataOf(deps), name: podsServiceName },
        spec: { clusterIP: "None", selector: catalogLabels, ports: [{ name: "http", port: catalogPort }] },
      },
      child,
    );
  const egress = egressOf(deps, databaseUrl);
  createPolicy(name, deps, egress, child);
  createTasksPolicy(`${name}-tasks`, deps, egress, child);
  if (deps.settings.ingress !== undefined || deps.settings.gateway !== undefined) {
    const ingress = [{ ports: [tcp(solver.port)] }];
    const spec = { podSelector: { matchLabels: solver.labels }, policyTypes: ["Ingress"], ingress };
    const metadata = { name: "acme-http01-solver", namespace: deps.namespace };
    new kubernetes.networking.v1.NetworkPolicy(`${name}-solver`, { metadata, spec }, child);
  }
  createCatalogEntry(name, deps, child);
}

function egressOf({ settings: { oidc, egressPorts } }: CatalogDeps, databaseUrl: pulumi.Input<string> | undefined) {
  const ofDatabase = databaseUrl === undefined ? [] : [pulumi.unsecret(pulumi.output(databaseUrl).apply(portOf))];
  const ofIssuer = [oidc?.issuer, oidc?.jwksUrl].flatMap((url) => (url === undefined ? [] : [portOf(url)]));
  return [
    toNameServers,
    // The catalog calls object stores and the issuer of tokens.
    { ports: [...new Set([443, ...ofIssuer, ...ofDatabase, ...egressPorts])].map(tcp) },
    { to: metadataServers.map((cidr) => ({ ipBlock: { cidr } })), ports: [80, 988].map(tcp) },
  ];
}

function createPolicy(name: string, deps: CatalogDeps, egress: ReturnType<typeof egressOf>, child: Child): void {
  const { cluster, platform, settings, monitoring } = deps;
  const { allowedNamespaces, gateway, ingress } = settings;
  const gatewayNamespaces = gateway === undefined ? [] : [gateway.namespace];
  const collectors = collectorNamespaces(monitoring);
  const callers = [...collectors, ...gatewayNamespaces, ...allowedNamespaces];
  const namespaces = [...platform.namespaces, ...callers].map((each) => podsOf(each));
  // Some load balancers connect to pods directly, from addresses of the cloud.
  const ranges = cluster.services.loadBalancerRanges;
  const className = gateway === undefined ? ingress?.className : gatewayClass;
  const loadBalancers = ownValue(ranges, className ?? "") ?? [];
  const addresses = [...loadBalancers, ...settings.allowedCidrs].map((cidr) => ({ ipBlock: { cidr } }));
  new kubernetes.networking.v1.NetworkPolicy(
    name,
    {
      metadata: metadataOf(deps),
      spec: {
        podSelector: { matchLabels: catalogLabels },
        policyTypes: ["Ingress", "Egress"],
        ingress: [
          { from: [{ podSelector: {} }, ...namespaces, ...addresses], ports: [tcp(catalogPort)] },
          ...collectors.map((each) => ({ from: [podsOf(each)], ports: [tcp(litestreamPort)] })),
        ],
        egress,
      },
    },
    child,
  );
}

/**
 * Grants the outgoing connections of the catalog to pods that read or write its database once: the move to
 * PostgreSQL, and the restore that a person starts by the runbook. They accept no connections.
 */
function createTasksPolicy(
  name: string,
  { namespace }: CatalogDeps,
  egress: ReturnType<typeof egressOf>,
  child: Child,
): void {
  const isTask = { key: nameLabel, operator: "In", values: [moveLabels[nameLabel], restoreName] };
  const spec = { podSelector: { matchExpressions: [isTask] }, policyTypes: ["Egress"], egress };
  new kubernetes.networking.v1.NetworkPolicy(
    name,
    { metadata: { name: `${catalogName}-tasks`, namespace }, spec },
    child,
  );
}

/** @throws RunError for an argument of another program that is no URL. The message has no URL, which may be a secret. */
function portOf(text: string): number {
  const url = URL.parse(text);
  if (url === null) throw new pulumi.RunError("database and oidc: a URL of the catalog is not valid");
  return url.port === "" ? (ownValue(webPorts, url.protocol) ?? postgresPort) : Number(url.port);
}
