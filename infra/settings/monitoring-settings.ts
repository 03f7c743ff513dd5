import { z } from "zod";
import { dnsLabel, labelKey, labels, labelValueText } from "./setting-types.ts";

/** The default namespace of a collector. */
const namespaceOf = { "prometheus-operator": "monitoring", google: "gmp-system" } as const;
type Collector = keyof typeof namespaceOf;

/** Creates the schema of the collector of Ray's and the catalog's metrics, with an option for Grafana. */
function monitoringBy<const Its extends Collector>(...collectors: readonly [Its, ...Its[]]) {
  const named = collectors.map((collector) =>
    z.strictObject({
      collector: z.literal(collector),
      /** The namespace of the collector. Only pods there may read the metrics. */
      namespace: dnsLabel.default(namespaceOf[collector]),
      /** The labels of the monitors, for a Prometheus that selects them by labels. */
      labels: labels.default({}),
      dashboards,
    }),
  );
  const none = z.strictObject({ collector: z.literal("none").default("none"), dashboards });
  return z.union([none, ...named], `must name a collector: none, ${collectors.join(", ")}`).prefault({});
}

/** The label and the value by which the side car of Grafana's chart finds dashboards; false for none. */
const dashboards = z
  .union([z.boolean(), z.strictObject({ label: labelKey, value: labelValueText })])
  .transform((given) => (given === true ? { label: "grafana_dashboard", value: "1" } : given))
  .default(false);

export const Monitoring = monitoringBy("prometheus-operator");
export const MonitoringOnGke = monitoringBy("prometheus-operator", "google");
export type MonitoringSettings = z.output<typeof MonitoringOnGke>;

/** The default: no monitoring. */
export const noMonitoring: MonitoringSettings = { collector: "none", dashboards: false };

/** Returns the namespaces that may read metrics; empty without a collector. */
export function collectorNamespaces(monitoring: MonitoringSettings): readonly string[] {
  return monitoring.collector === "none" ? [] : [monitoring.namespace];
}
