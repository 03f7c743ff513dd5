/** Tests of a deployed stack, which share one stack and one control plane. */
import { describe } from "vitest";
import { inTurn, together } from "./cluster.ts";
import "./shared-stack/shared-stack.ts";

describe(
  "on a shared stack",
  together,
  inTurn("Ray clusters", async () => {
    await import("./shared-stack/control-plane.ts");
    await import("./shared-stack/permissions.ts");
    await import("./shared-stack/catalog-isolation.ts");
    await import("./shared-stack/catalog-recovery.ts");
    await import("./shared-stack/doctor.ts");
    await import("./shared-stack/ray-clusters.ts");
    await import("./shared-stack/runner.ts");
    await import("./shared-stack/team-isolation.ts");
    // The last one, because it labels all nodes.
    await import("./shared-stack/local-cluster-page.ts");
  }),
);
describe(
  "with a shared stack",
  together,
  inTurn("the catalog", async () => {
    await import("./shared-stack/catalog-loop.ts");
  }),
);
