import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { catalogLabels, catalogPort, ownValue } from "@tiltyard/protocol";
import { collectorNamespaces } from "../../settings/monitoring-settings.ts";
import { podsOf, tcp, toNameServers } from "../network-peers.ts";
import { createCatalogEntry } from "./catalog-entry.ts";
import { type CatalogPlace, type Child, metadataOf } from "./catalog-place.ts";

/** The key of the addresses of a cloud's gateways. */
const gatewayClass = "gateway";
const postgresPort = 5432;
/** The metadata servers that provide the identity of pods on Google's and Amazon's nodes. */
const metadataServers = ["169.254.169.254/32", "169.254.170.23/32", "169.254.169.252/32"];

/**
 * Creates the catalog's service, its entry from outside, and a network policy for its callers and its outgoing
 * connections.
 */
export function createCatalogNetwork(
  name: string,
  place: CatalogPlace,
  databaseUrl: pulumi.Input<string> | undefined,
  child: Child,
): void {
  new kubernetes.core.v1.Service(
    name,
    {
      metadata: metadataOf(place),
      spec: { selector: catalogLabels, ports: [{ name: "http", port: catalogPort, targetPort: "http" }] },
    },
    child,
  );
  createPolicy(name, place, databaseUrl, child);
  createCatalogEntry(name, place, child);
}

function createPolicy(
  name: string,
  place: CatalogPlace,
  databaseUrl: pulumi.Input<string> | undefined,
  child: Child,
): void {
  const { cluster, platform, settings, monitoring } = place;
  const { allowedNamespaces, gateway, ingress } = settings;
  const gatewayNamespaces = gateway === undefined ? [] : [gateway.namespace];
  const callers = [...collectorNamespaces(monitoring), ...gatewayNamespaces, ...allowedNamespaces];
  const namespaces = [...platform.namespaces, ...callers].map((each) => podsOf(each));
  // Some load balancers connect to pods directly, from addresses of the cloud.
  const ranges = cluster.services.loadBalancerRanges;
  const className = gateway === undefined ? ingress?.className : gatewayClass;
  const loadBalancers = ownValue(ranges, className ?? "") ?? [];
  const addresses = [...loadBalancers, ...settings.allowedCidrs].map((cidr) => ({ ipBlock: { cidr } }));
  const databasePort = databaseUrl === undefined ? [] : [pulumi.unsecret(pulumi.output(databaseUrl).apply(portOf))];
  new kubernetes.networking.v1.NetworkPolicy(
    name,
    {
      metadata: metadataOf(place),
      spec: {
        podSelector: { matchLabels: catalogLabels },
        policyTypes: ["Ingress", "Egress"],
        ingress: [{ from: [{ podSelector: {} }, ...namespaces, ...addresses], ports: [tcp(catalogPort)] }],
        egress: [
          toNameServers,
          // The catalog calls object stores and the issuer of tokens.
          { ports: [443, ...databasePort, ...settings.egressPorts].map(tcp) },
          { to: metadataServers.map((cidr) => ({ ipBlock: { cidr } })), ports: [80, 988].map(tcp) },
        ],
      },
    },
    child,
  );
}

function portOf(databaseUrl: string): number {
  if (!URL.canParse(databaseUrl)) throw new pulumi.RunError("The URL of the catalog's database is not a URL.");
  const { port } = new URL(databaseUrl);
  return port === "" ? postgresPort : Number(port);
}
