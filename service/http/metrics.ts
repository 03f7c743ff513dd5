import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

export interface Metrics {
  observeOperation(operationId: string, status: number, durationMs: number): void;
  /** Counts a connection that was closed because of a limit. */
  countClosedConnection(reason: "too many without a request" | "a slow body"): void;
  /**
   * The metrics in the text format of Prometheus.
   *
   * @param others Those of the other processes of this service, as their `values` has them.
   */
  text(others?: readonly unknown[]): Promise<string>;
  /** The metrics of this process, for another one. */
  values(): Promise<unknown>;
  readonly contentType: string;
}

/** Upper bounds in seconds, from a read that is in memory to a copy in a slow object store. */
const buckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const ofAll = ["tiltyard_tasks_due", "tiltyard_tasks_failing"];

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** How much deferred work of a kind there is. */
export interface TaskCount {
  readonly kind: string;
  readonly due: number;
  readonly failing: number;
}

/** @param countTasks Is called each time the metrics are read. When it fails, the others are answered. */
export function createMetrics(countTasks: () => Promise<readonly TaskCount[]>): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const operations = new Histogram({
    name: "tiltyard_operation_duration_seconds",
    help: "How long operations of the protocol took, by operation id and HTTP status.",
    labelNames: ["operation", "status"],
    buckets,
    registers: [registry],
  });
  const closed = new Counter({
    name: "tiltyard_closed_connections_total",
    help: "Connections that were closed because of a limit, by reason.",
    labelNames: ["reason"],
    registers: [registry],
  });
  const due = new Gauge({
    name: "tiltyard_tasks_due",
    help: "Deferred work that waits for a process or is being done, by kind, of all processes together.",
    labelNames: ["kind"],
    registers: [registry],
  });
  const failing = new Gauge({
    name: "tiltyard_tasks_failing",
    help: "Deferred work that failed when it was last tried, by kind, of all processes together.",
    labelNames: ["kind"],
    registers: [registry],
  });
  const readTasks = async () => {
    for (const { kind, ...count } of await countTasks()) {
      due.set({ kind }, count.due);
      failing.set({ kind }, count.failing);
    }
  };
  /** Finding the series of its labels takes longer than an observation does. */
  const series = new Map<string, ReturnType<typeof operations.labels>>();
  return {
    observeOperation: (operation, status, durationMs) => {
      const key = operation + status;
      let found = series.get(key);
      if (found === undefined) {
        found = operations.labels({ operation, status });
        series.set(key, found);
      }
      found.observe(durationMs / 1000);
    },
    countClosedConnection: (reason) => closed.inc({ reason }),
    text: async (others = []) => {
      await readTasks().catch(() => {
        due.reset();
        failing.reset();
      });
      if (others.length === 0) return registry.metrics();
      const all = [await registry.getMetricsAsJSON(), ...others];
      return AggregatorRegistry.aggregate(all.filter(isObject)).metrics();
    },
    // The process that is asked adds those that are of all processes together.
    values: async () => (await registry.getMetricsAsJSON()).filter(({ name }) => !ofAll.includes(name)),
    contentType: registry.contentType,
  };
}
