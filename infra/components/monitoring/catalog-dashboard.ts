import type { Dashboard } from "./grafana.ts";

const duration = "tiltyard_operation_duration_seconds";
const failed = 'status=~"5.."';
const percentile = (share: number) =>
  `histogram_quantile(${share}, sum by (le, operation) (rate(${duration}_bucket[5m])))`;

/** The dashboard of the catalog's requests, latencies and pending work. */
export const catalogDashboard: Dashboard = {
  uid: "tiltyard-catalog",
  title: "Tiltyard: catalog",
  panels: [
    {
      title: "Operations",
      unit: "reqps",
      queries: { "{{operation}}": `sum by (operation) (rate(${duration}_count[5m]))` },
    },
    {
      title: "Failed operations",
      unit: "reqps",
      queries: { "{{operation}} {{status}}": `sum by (operation, status) (rate(${duration}_count{${failed}}[5m]))` },
    },
    { title: "Median", unit: "s", queries: { "{{operation}}": percentile(0.5) } },
    { title: "99th percentile", unit: "s", queries: { "{{operation}}": percentile(0.99) } },
    {
      title: "Deferred work",
      unit: "short",
      queries: {
        // Each pod reports the tasks of all pods.
        "{{kind}}, due": "max by (kind) (tiltyard_tasks_due)",
        "{{kind}}, failing": "max by (kind) (tiltyard_tasks_failing)",
      },
    },
    { title: "Stalled jobs", unit: "short", queries: { stalled: "max(tiltyard_jobs_stalled)" } },
    {
      title: "Idle connections evicted",
      unit: "reqps",
      queries: { evicted: "sum(rate(tiltyard_evicted_connections_total[5m]))" },
    },
    {
      title: "Copies of SQLite by Litestream",
      unit: "short",
      queries: {
        "changes in 5 minutes": "increase(litestream_txid[5m])",
        "uploads in 5 minutes": 'increase(litestream_replica_operation_total{operation="PUT"}[5m])',
      },
    },
    {
      title: "Memory",
      unit: "bytes",
      queries: { "{{pod}}": 'process_resident_memory_bytes{pod=~"tiltyard-catalog.*"}' },
    },
    {
      title: "Waits of the event loop, 99 of 100",
      unit: "s",
      queries: { "{{pod}}": 'nodejs_eventloop_lag_p99_seconds{pod=~"tiltyard-catalog.*"}' },
    },
  ],
};
