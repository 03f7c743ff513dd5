import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

export type Metrics = ReturnType<typeof createMetrics>;

/** The upper bounds in seconds, from a read in memory to a copy in a slow object store. */
const buckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** The counts in the database. They are read on every scrape, which succeeds without those that fail. */
export interface StoredCounts {
  tasks(): Promise<readonly { readonly kind: string; readonly due: number; readonly failing: number }[]>;
  stalledJobs(): Promise<number>;
}

export function createMetrics(counts: StoredCounts) {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const operations = new Histogram({
    name: "tiltyard_operation_duration_seconds",
    help: "Duration of operations, by operation id and HTTP status.",
    labelNames: ["operation", "status"],
    buckets,
    registers: [registry],
  });
  const evicted = new Counter({
    name: "tiltyard_evicted_connections_total",
    help: "Idle connections that were closed because of the limit.",
    registers: [registry],
  });
  const due = new Gauge({
    name: "tiltyard_tasks_due",
    help: "Deferred tasks that are due or in progress, by kind, in all replicas together.",
    labelNames: ["kind"],
    registers: [registry],
  });
  const failing = new Gauge({
    name: "tiltyard_tasks_failing",
    help: "Deferred tasks whose last attempt failed, by kind, in all replicas together.",
    labelNames: ["kind"],
    registers: [registry],
  });
  const stalled = new Gauge({
    name: "tiltyard_jobs_stalled",
    help: "Running jobs without progress for longer than TILTYARD_STALLED_AFTER, in all replicas together.",
    registers: [registry],
  });
  const readTasks = async () => {
    due.reset();
    failing.reset();
    for (const { kind, ...count } of await counts.tasks()) {
      due.set({ kind }, count.due);
      failing.set({ kind }, count.failing);
    }
  };
  return {
    observeOperation: (operation: string, status: number, durationMs: number) =>
      operations.observe({ operation, status }, durationMs / 1000),
    /** Counts an idle connection that was closed to free capacity for others. */
    countEvictedConnection: () => evicted.inc(),
    text: async () => {
      await Promise.allSettled([readTasks(), counts.stalledJobs().then((count) => stalled.set(count))]);
      return registry.metrics();
    },
    contentType: registry.contentType,
  };
}
