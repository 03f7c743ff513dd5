import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import type { MonitoringSettings } from "../../settings/monitoring-settings.ts";

export interface MonitorArgs {
  readonly monitoring: MonitoringSettings;
  readonly namespace: string;
  /** The name of the monitor. */
  readonly monitorName: string;
  /** The selector of the pods with the metrics. */
  readonly selector: object;
  /** The names of their ports. Ports that a pod does not have are skipped. */
  readonly ports: readonly [string, ...string[]];
  /** The labels of the pods that series have too, by their names in the series. */
  readonly labels?: Readonly<Record<string, string>>;
}

const path = "/metrics";
const interval = "30s";

/** Registers pods with metrics with the collector of a stack, if it has one. */
export function createMonitor(name: string, args: MonitorArgs, options: pulumi.CustomResourceOptions): void {
  const { monitoring, namespace, monitorName } = args;
  if (monitoring.collector === "none") return;
  const metadata = { name: monitorName, namespace, labels: monitoring.labels };
  const monitor = monitoring.collector === "google" ? podMonitoring(args) : podMonitor(args);
  new kubernetes.apiextensions.CustomResource(name, { ...monitor, metadata }, options);
}

/** Returns a monitor for the Prometheus operator. */
function podMonitor({ selector, ports, labels = {} }: MonitorArgs) {
  const relabelings = Object.entries(labels).map(([targetLabel, label]) => ({
    sourceLabels: [`__meta_kubernetes_pod_label_${label.replace(/\W/g, "_")}`],
    targetLabel,
  }));
  const podMetricsEndpoints = ports.map((port) => ({ port, path, interval, relabelings }));
  return { apiVersion: "monitoring.coreos.com/v1", kind: "PodMonitor", spec: { selector, podMetricsEndpoints } };
}

/** Returns a monitor for Google's managed Prometheus. */
function podMonitoring({ selector, ports, labels = {} }: MonitorArgs) {
  const fromPod = Object.entries(labels).map(([to, from]) => ({ from, to }));
  const endpoints = ports.map((port) => ({ port, path, interval }));
  return {
    apiVersion: "monitoring.googleapis.com/v1",
    kind: "PodMonitoring",
    spec: { selector, endpoints, ...(fromPod.length > 0 && { targetLabels: { fromPod } }) },
  };
}
