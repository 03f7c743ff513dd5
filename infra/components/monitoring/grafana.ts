import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import type { MonitoringSettings } from "../../settings/monitoring-settings.ts";

/** A panel with one line for each series of its queries. */
export interface Panel {
  readonly title: string;
  /** The unit in Grafana's terms: `s`, `bytes`, `percentunit`, `reqps`, `short`. */
  readonly unit: string;
  /** The PromQL queries, by the legend of their series. */
  readonly queries: Readonly<Record<string, string>>;
}

export interface Dashboard {
  /** The id, which is the same on each Grafana so that an upgrade replaces the dashboard. */
  readonly uid: string;
  readonly title: string;
  /** The label that can be selected, and the metric with its values. */
  readonly variable?: { readonly label: string; readonly metric: string };
  readonly panels: readonly Panel[];
}

/** The size of a panel. A row has 24 columns and thus two panels. */
const [width, height] = [12, 8];
const datasource = { type: "prometheus", uid: "$" + "{datasource}" };

/** Returns a dashboard in Grafana's import format. */
function grafanaJson({ uid, title, variable, panels }: Dashboard): string {
  return JSON.stringify({
    ...{ uid, title, schemaVersion: 39, editable: true, refresh: "30s", time: { from: "now-3h", to: "now" } },
    tags: ["tiltyard"],
    templating: {
      list: [
        { name: "datasource", type: "datasource", query: "prometheus" },
        ...(variable === undefined ? [] : [choiceOf(variable)]),
      ],
    },
    panels: panels.map((panel, index) => ({
      id: index + 1,
      type: "timeseries",
      title: panel.title,
      datasource,
      gridPos: { x: (index % 2) * width, y: Math.floor(index / 2) * height, w: width, h: height },
      fieldConfig: { defaults: { unit: panel.unit, min: 0 }, overrides: [] },
      targets: Object.entries(panel.queries).map(([legendFormat, expr], query) => ({
        ...{ refId: String.fromCharCode("A".charCodeAt(0) + query), expr, legendFormat, datasource },
      })),
    })),
  });
}

function choiceOf({ label, metric }: NonNullable<Dashboard["variable"]>) {
  const query = `label_values(${metric}, ${label})`;
  return {
    ...{ name: label, type: "query", datasource, query: { query, refId: label }, refresh: 2 },
    ...{ includeAll: true, multi: true, allValue: ".*", current: { text: "All", value: "$__all" } },
  };
}

export interface DashboardArgs {
  readonly monitoring: MonitoringSettings;
  readonly namespace: string;
  readonly dashboard: Dashboard;
}

/** Creates a ConfigMap with a dashboard, which the side car of Grafana's chart finds in any namespace. */
export function createDashboard(
  name: string,
  { monitoring: { dashboards }, namespace, dashboard }: DashboardArgs,
  options: pulumi.CustomResourceOptions,
): void {
  if (dashboards === false) return;
  const { uid } = dashboard;
  new kubernetes.core.v1.ConfigMap(
    name,
    {
      metadata: { name: uid, namespace, labels: { [dashboards.label]: dashboards.value } },
      data: { [`${uid}.json`]: grafanaJson(dashboard) },
    },
    options,
  );
}
