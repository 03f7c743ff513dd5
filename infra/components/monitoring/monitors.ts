import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import type { MonitoringSettings } from "../../monitoring-settings.ts";

export interface MonitorArgs {
  readonly monitoring: MonitoringSettings;
  readonly namespace: string;
  /** Of the monitor. */
  readonly monitorName: string;
  /** Which pods have the metrics. */
  readonly selector: object;
  /** Names of their ports. One that a pod does not have is left out. */
  readonly ports: readonly [string, ...string[]];
  /** Labels of the pods that series have too, by the names that they have there. */
  readonly labels?: Readonly<Record<string, string>>;
}

const path = "/metrics";
const interval = "30s";

/** Tells the collector of a stack, if it has one, which pods have metrics. */
export function createMonitor(name: string, args: MonitorArgs, options: pulumi.CustomResourceOptions): void {
  const { monitoring, namespace, monitorName } = args;
  if (monitoring.collector === "none") return;
  const metadata = { name: monitorName, namespace, labels: monitoring.labels };
  const monitor = monitoring.collector === "google" ? podMonitoring(args) : podMonitor(args);
  new kubernetes.apiextensions.CustomResource(name, { ...monitor, metadata }, options);
}

/** For the Prometheus operator. */
function podMonitor({ selector, ports, labels = {} }: MonitorArgs) {
  const relabelings = Object.entries(labels).map(([targetLabel, label]) => ({
    sourceLabels: [`__meta_kubernetes_pod_label_${label.replace(/\W/g, "_")}`],
    targetLabel,
  }));
  const podMetricsEndpoints = ports.map((port) => ({ port, path, interval, relabelings }));
  return { apiVersion: "monitoring.coreos.com/v1", kind: "PodMonitor", spec: { selector, podMetricsEndpoints } };
}

/** For Google's managed Prometheus. */
function podMonitoring({ selector, ports, labels = {} }: MonitorArgs) {
  const fromPod = Object.entries(labels).map(([to, from]) => ({ from, to }));
  const endpoints = ports.map((port) => ({ port, path, interval }));
  return {
    apiVersion: "monitoring.googleapis.com/v1",
    kind: "PodMonitoring",
    spec: { selector, endpoints, ...(fromPod.length > 0 && { targetLabels: { fromPod } }) },
  };
}
