import type { Dashboard } from "../../infra/components/monitoring/grafana.ts";

/** Labels that Prometheus adds at collection. */
const collected = ["pod", "ray_io_cluster"];

/**
 * Finds the metrics and labels of a dashboard that a program does not expose.
 *
 * @param exposition The answer of the program to Prometheus.
 * @returns A sentence for each missing metric and label.
 */
export function missingOf(dashboard: Dashboard, exposition: string): string[] {
  const metrics = readExposition(exposition);
  const queries = dashboard.panels.flatMap((panel) => Object.values(panel.queries));
  const asked = [...queries, ...(dashboard.variable === undefined ? [] : [dashboard.variable.metric])];
  return asked.flatMap((query) => {
    const names = [...query.matchAll(/\b(?:tiltyard|litestream|ray|process|nodejs)_\w+/g)]
      .map(([name]) => name)
      .filter((name) => !collected.includes(name));
    if (names.length === 0) return [`${query}: has no metric`];
    return [...new Set(names)].flatMap((name) => {
      const labels = metrics.get(name);
      if (labels === undefined) return [`${name}: there is no such metric`];
      return labelsOf(query)
        .filter((label) => !labels.has(label) && !collected.includes(label))
        .map((label) => `${name}: has no label ${label}`);
    });
  });
}

/** Returns the labels of grouping clauses and selectors. */
function labelsOf(query: string): string[] {
  const grouped = [...query.matchAll(/by \(([^)]*)\)/g)].flatMap(([, names = ""]) => names.split(/,\s*/));
  const chosen = [...query.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"/g)].map(([, name = ""]) => name);
  return [...grouped, ...chosen];
}

function readExposition(text: string): Map<string, Set<string>> {
  const metrics = new Map<string, Set<string>>();
  for (const line of text.split("\n")) {
    const [, name, labels = ""] = /^([a-z_]\w*)(?:\{(.*)\})? \S+/.exec(line) ?? [];
    if (name === undefined) continue;
    const known = metrics.get(name) ?? new Set();
    for (const [, label = ""] of labels.matchAll(/(\w+)="/g)) known.add(label);
    metrics.set(name, known);
  }
  return metrics;
}
