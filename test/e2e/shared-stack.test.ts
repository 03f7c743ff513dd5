/** What a stack makes, once it is there: one stack and one control plane for all that look at it, in turn. */
import "./shared-stack/control-plane.ts";
import "./shared-stack/permissions.ts";
import "./shared-stack/catalog-loop.ts";
import "./shared-stack/doctor.ts";
import "./shared-stack/ray-clusters.ts";
