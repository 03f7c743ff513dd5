import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import type { MonitoringSettings } from "../../monitoring-settings.ts";

/** A panel with a line for each series of its queries. */
export interface Panel {
  readonly title: string;
  /** In Grafana's words: `s`, `bytes`, `percentunit`, `reqps`, `short`. */
  readonly unit: string;
  /** PromQL, by what the legend calls its series. */
  readonly queries: Readonly<Record<string, string>>;
}

export interface Dashboard {
  /** The same on each Grafana, so that an upgrade replaces what was there. */
  readonly uid: string;
  readonly title: string;
  /** What one can choose, and the metric whose label has its values. */
  readonly variable?: { readonly label: string; readonly metric: string };
  readonly panels: readonly Panel[];
}

/** Panels are two in a row; a row has 24 columns. */
const [width, height] = [12, 8];
const datasource = { type: "prometheus", uid: "$" + "{datasource}" };

/** A dashboard as Grafana imports it. */
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

/** Ships a dashboard as the side car of Grafana's chart finds it, in whichever namespace. */
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
