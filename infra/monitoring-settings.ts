import { z } from "zod";
import { dnsLabel, labelKey, labels, labelValueText } from "./setting-types.ts";

/** The default namespace of a collector. */
const namespaceOf = { "prometheus-operator": "monitoring", google: "gmp-system" } as const;
type Collector = keyof typeof namespaceOf;

/** The collector of the metrics of Ray and of the catalog, and whether Grafana shows them. */
function monitoringBy<const Its extends Collector>(...collectors: readonly [Its, ...Its[]]) {
  const named = collectors.map((collector) =>
    z.strictObject({
      collector: z.literal(collector),
      /** Where it runs: pods there, and no others, may read the metrics. */
      namespace: dnsLabel.default(namespaceOf[collector]),
      /** Of the monitors, where a Prometheus takes those with certain labels alone. */
      labels: labels.default({}),
      dashboards,
    }),
  );
  const none = z.strictObject({ collector: z.literal("none").default("none"), dashboards });
  return z.union([none, ...named], `must name a collector: none, ${collectors.join(", ")}`).prefault({});
}

/** Label and value by which the side car of Grafana's chart finds dashboards; false is none. */
const dashboards = z
  .union([z.boolean(), z.strictObject({ label: labelKey, value: labelValueText })])
  .transform((given) => (given === true ? { label: "grafana_dashboard", value: "1" } : given))
  .default(false);

export const Monitoring = monitoringBy("prometheus-operator");
export const MonitoringOnGke = monitoringBy("prometheus-operator", "google");
export type MonitoringSettings = z.output<typeof MonitoringOnGke>;

/** Of a stack that is told nothing. */
export const noMonitoring: MonitoringSettings = { collector: "none", dashboards: false };

/** Namespaces from which metrics are read; empty without a collector. */
export function collectorNamespaces(monitoring: MonitoringSettings): readonly string[] {
  return monitoring.collector === "none" ? [] : [monitoring.namespace];
}
