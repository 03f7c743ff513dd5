import { catalogLabels, catalogName } from "@tiltyard/platform";
import { catalogDashboard } from "../monitoring/catalog-dashboard.ts";
import { createDashboard } from "../monitoring/grafana.ts";
import { createMonitor } from "../monitoring/monitors.ts";
import type { CatalogDeps, Child } from "./catalog-deps.ts";
import { litestreamName } from "./litestream.ts";

/** Registers the metrics of the catalog and of its Litestream with the collector of the stack and with Grafana. */
export function createCatalogMonitoring(name: string, { monitoring, namespace }: CatalogDeps, child: Child): void {
  const series = { selector: { matchLabels: catalogLabels }, ports: ["http", litestreamName] as const };
  createMonitor(`${name}-monitor`, { monitoring, namespace, monitorName: catalogName, ...series }, child);
  createDashboard(`${name}-dashboard`, { monitoring, namespace, dashboard: catalogDashboard }, child);
}
