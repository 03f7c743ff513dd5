import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import { catalogLabels, catalogName, catalogPort } from "@tiltyard/protocol";
import type { StackConfig } from "../../config.ts";
import { metadataOf } from "./catalog-names.ts";

const postgresPort = 5432;
/** Where pods on Google's and Amazon's nodes ask who they are. */
const metadataServers = ["169.254.169.254/32", "169.254.170.23/32", "169.254.169.252/32"];

/** How the catalog is reached, by whom, and whom it may reach. */
export function createCatalogNetwork(name: string, config: StackConfig, child: pulumi.CustomResourceOptions): void {
  new kubernetes.core.v1.Service(
    name,
    {
      metadata: metadataOf(config),
      spec: { selector: catalogLabels, ports: [{ name: "http", port: catalogPort, targetPort: "http" }] },
    },
    child,
  );
  createPolicy(name, config, child);
  if (config.catalog.ingress !== undefined) createIngress(name, config, config.catalog.ingress, child);
  if (config.catalog.serviceMonitor)
    new kubernetes.apiextensions.CustomResource(
      `${name}-monitor`,
      {
        apiVersion: "monitoring.coreos.com/v1",
        kind: "ServiceMonitor",
        metadata: metadataOf(config),
        spec: { selector: { matchLabels: catalogLabels }, endpoints: [{ port: "http", path: "/metrics" }] },
      },
      child,
    );
}

function createPolicy(
  name: string,
  { catalog, namespace, databaseUrl }: StackConfig,
  child: pulumi.CustomResourceOptions,
): void {
  const namespaces = catalog.allowedNamespaces.map((each) => ({
    namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": each } },
  }));
  const tcp = (port: number) => ({ protocol: "TCP", port });
  const databasePort = catalog.database === "sqlite" ? [] : [portOf(databaseUrl) ?? postgresPort];
  new kubernetes.networking.v1.NetworkPolicy(
    name,
    {
      metadata: { name: catalogName, namespace, labels: catalogLabels },
      spec: {
        podSelector: { matchLabels: catalogLabels },
        policyTypes: ["Ingress", "Egress"],
        ingress: [{ from: [{ podSelector: {} }, ...namespaces], ports: [tcp(catalogPort)] }],
        egress: [
          { ports: [tcp(53), { protocol: "UDP", port: 53 }] },
          // Object stores, and the issuer of tokens.
          { ports: [443, ...databasePort, ...catalog.egressPorts].map(tcp) },
          { to: metadataServers.map((cidr) => ({ ipBlock: { cidr } })), ports: [80, 988].map(tcp) },
        ],
      },
    },
    child,
  );
}

function portOf(databaseUrl: string | undefined): number | undefined {
  const port = databaseUrl === undefined ? "" : new URL(databaseUrl).port;
  return port === "" ? undefined : Number(port);
}

function createIngress(
  name: string,
  config: StackConfig,
  ingress: NonNullable<StackConfig["catalog"]["ingress"]>,
  child: pulumi.CustomResourceOptions,
): void {
  const backend = { service: { name: catalogName, port: { name: "http" } } };
  new kubernetes.networking.v1.Ingress(
    name,
    {
      metadata: { ...metadataOf(config), annotations: ingress.annotations },
      spec: {
        ingressClassName: ingress.className,
        tls: [{ hosts: [ingress.host], secretName: ingress.tlsSecret }],
        rules: [{ host: ingress.host, http: { paths: [{ path: "/", pathType: "Prefix", backend }] } }],
      },
    },
    child,
  );
}
