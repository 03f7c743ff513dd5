import type { Dashboard } from "./grafana.ts";

/** The label of series that contains the name of the RayCluster, which monitors add. */
export const rayClusterLabel = "ray_io_cluster";

const chosen = `${rayClusterLabel}=~"$${rayClusterLabel}"`;
const by = (label: string, metric: string, more = "") =>
  `sum by (${rayClusterLabel}, ${label}) (${metric}{${[chosen, more].filter((each) => each !== "").join(", ")}})`;
const cluster = `{{${rayClusterLabel}}}`;

/** The dashboard of the resources and pending work of Ray clusters. Names and labels are those of Ray's own metrics. */
export const rayDashboard: Dashboard = {
  uid: "tiltyard-ray",
  title: "Tiltyard: Ray clusters",
  variable: { label: rayClusterLabel, metric: "ray_node_cpu_count" },
  panels: [
    {
      title: "Nodes",
      unit: "short",
      queries: { [`${cluster} {{node_type}}`]: by("node_type", "ray_cluster_active_nodes") },
    },
    {
      title: "CPUs",
      unit: "short",
      queries: {
        [`${cluster} in use`]: by("Name", "ray_resources", 'Name="CPU", State="USED"'),
        [`${cluster} free`]: by("Name", "ray_resources", 'Name="CPU", State="AVAILABLE"'),
      },
    },
    {
      title: "GPUs",
      unit: "short",
      queries: {
        [`${cluster} in use`]: by("Name", "ray_resources", 'Name="GPU", State="USED"'),
        [`${cluster} free`]: by("Name", "ray_resources", 'Name="GPU", State="AVAILABLE"'),
      },
    },
    {
      title: "Tasks",
      unit: "short",
      queries: { [`${cluster} {{State}}`]: by("State", "ray_tasks", 'State!~"FINISHED|FAILED"') },
    },
    {
      title: "Actors",
      unit: "short",
      queries: { [`${cluster} {{State}}`]: by("State", "ray_actors", 'Source="gcs", State!="DEAD"') },
    },
    {
      title: "Tasks that fit on no node",
      unit: "short",
      queries: { [`${cluster} {{Reason}}`]: by("Reason", "ray_scheduler_unscheduleable_tasks") },
    },
    {
      title: "CPU in use",
      unit: "percent",
      queries: { [`${cluster} {{pod}}`]: `ray_node_cpu_utilization{${chosen}}` },
    },
    {
      title: "Memory in use",
      unit: "percentunit",
      queries: { [`${cluster} {{pod}}`]: `ray_node_mem_used{${chosen}} / ray_node_mem_total{${chosen}}` },
    },
    {
      title: "Object store",
      unit: "bytes",
      queries: {
        [`${cluster} {{Location}}`]: by("Location", "ray_object_store_memory"),
        [`${cluster} {{State}} to disk`]: by("State", "ray_spill_manager_objects_bytes", 'State="Spilled"'),
      },
    },
    {
      title: "Disk",
      unit: "bytes",
      queries: { [`${cluster} {{pod}}`]: `ray_node_disk_usage{${chosen}}` },
    },
  ],
};
