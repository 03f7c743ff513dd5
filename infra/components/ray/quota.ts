import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import { gpuResource } from "@tiltyard/platform";
import type { QuotaSettings } from "../../settings/team-settings.ts";

/** Returns the amount of each resource of a quota. */
export function amountsOf({ cpu, memory, gpus }: QuotaSettings): Readonly<Record<string, string>> {
  return { cpu, memory, [gpuResource]: String(gpus) };
}

/**
 * Creates the limit of the total requests of a namespace's pods. Pods without requests would be rejected, so they
 * receive small defaults.
 */
export function createQuota(
  name: string,
  { namespace, quota }: { readonly namespace: string; readonly quota: QuotaSettings | undefined },
  options: pulumi.CustomResourceOptions,
): void {
  if (quota === undefined) return;
  const metadata = { name: "ray", namespace };
  const hard = Object.entries(amountsOf(quota)).map(([resource, amount]) => [`requests.${resource}`, amount] as const);
  new kubernetes.core.v1.ResourceQuota(name, { metadata, spec: { hard: Object.fromEntries(hard) } }, options);
  new kubernetes.core.v1.LimitRange(
    name,
    { metadata, spec: { limits: [{ type: "Container", defaultRequest: { cpu: "100m", memory: "128Mi" } }] } },
    options,
  );
}
