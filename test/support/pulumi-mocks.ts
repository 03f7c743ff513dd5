import * as pulumi from "@pulumi/pulumi";
import type { Mocks } from "@pulumi/pulumi/runtime/index.js";

/** Replaces the engine by mocks. They accept resource hooks, which Pulumi's own mocks do not, and call none. */
export async function setMocks(mocks: Mocks, project: string, stack?: string, isPreview = false): Promise<void> {
  await pulumi.runtime.setMocks(mocks, project, stack, isPreview, "organization");
  const monitor = pulumi.runtime.getMonitor() as unknown as Record<string, unknown>;
  monitor.registerResourceHook = (_: unknown, answered: (error: null, answer: object) => void) => answered(null, {});
}
