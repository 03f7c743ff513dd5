import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import { rayLogs } from "@tiltyard/protocol";
import { versions } from "../../versions.ts";

/** Of the side car in Ray's pods. */
export const logsImage = `fluent/fluent-bit:${versions.fluentBit}`;

export const logsConfigMap = "ray-logs";

/** How often new files are detected, in seconds: a file that is deleted sooner is not kept. */
const refreshSeconds = 2;

/** As Fluent Bit reads it from its environment. */
const variable = (name: string) => ["$", "{", name, "}"].join("");

/**
 * The settings of the side cars that clients add to Ray's pods: they print what Ray writes to files, so that the logs
 * of the cloud, or whatever collects the output of containers, have it when the pods are gone.
 */
export function createRayLogs(name: string, namespace: string, options: pulumi.CustomResourceOptions): void {
  const { variables, folder, settingsFile } = rayLogs;
  const settings = {
    service: { flush: 1, log_level: "warn" },
    pipeline: {
      inputs: [
        {
          name: "tail",
          path: ["log", "out", "err"].map((ending) => `${folder}/session_latest/logs/*.${ending}`).join(","),
          path_key: "file",
          read_from_head: true,
          refresh_interval: refreshSeconds,
        },
      ],
      filters: [
        {
          name: "record_modifier",
          match: "*",
          record: [`ray_cluster ${variable(variables.cluster)}`, `pod ${variable(variables.pod)}`],
        },
      ],
      outputs: [{ name: "stdout", match: "*", format: "json_lines" }],
    },
  };
  // JSON is YAML.
  const data = { [settingsFile]: JSON.stringify(settings) };
  new kubernetes.core.v1.ConfigMap(name, { metadata: { name: logsConfigMap, namespace }, data }, options);
}
