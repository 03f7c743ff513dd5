import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import { rayLogs } from "@tiltyard/platform";
import { versions } from "../../versions.ts";

/** The image of the side car in Ray's pods. */
export const logsImage = `fluent/fluent-bit:${versions.fluentBit}`;

export const logsConfigMap = "ray-logs";

/** The interval in seconds at which new files are detected. Files that are deleted sooner are lost. */
const refreshSeconds = 2;

/** Returns a reference to an environment variable in Fluent Bit's syntax. */
const variable = (name: string) => ["$", "{", name, "}"].join("");

/**
 * Creates the settings of the side cars that clients add to Ray's pods. They print the content of Ray's log files, so
 * that the cloud or another collector of container output still has it after the deletion of the pods.
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
  // JSON is also valid YAML.
  const data = { [settingsFile]: JSON.stringify(settings) };
  new kubernetes.core.v1.ConfigMap(name, { metadata: { name: logsConfigMap, namespace }, data }, options);
}
