/** A node of a graph. */
export interface Node {
  readonly text: string;
  /** A description in small letters below the text. */
  readonly kind: string;
  readonly href?: string;
}

/** The keys of two nodes, the first one of which is the origin of the second. */
export type Edge = readonly [from: string, to: string];

const box = { width: 210, height: 46, gapX: 70, gapY: 14 };
const textMax = 26;

const shortened = (text: string) => (text.length > textMax ? `${text.slice(0, textMax - 1)}…` : text);

/** Returns the column of each node: one after the last of its origins. A cycle ends where it was entered. */
function layersOf(nodes: ReadonlyMap<string, Node>, edges: readonly Edge[]): ReadonlyMap<string, number> {
  const layers = new Map<string, number>();
  const layerOf = (key: string, path: ReadonlySet<string>): number => {
    const known = layers.get(key);
    if (known !== undefined) return known;
    if (path.has(key)) return 0;
    const origins = edges.filter(([, to]) => to === key).map(([from]) => layerOf(from, new Set([...path, key])) + 1);
    const layer = Math.max(0, ...origins);
    layers.set(key, layer);
    return layer;
  };
  for (const key of nodes.keys()) layerOf(key, new Set());
  return layers;
}

/** A directed graph from left to right. */
export function Graph({
  nodes,
  edges,
  label,
}: {
  readonly nodes: ReadonlyMap<string, Node>;
  readonly edges: readonly Edge[];
  readonly label: string;
}) {
  const layers = layersOf(nodes, edges);
  const columns = Map.groupBy(nodes.keys(), (key) => layers.get(key) ?? 0);
  const places = new Map(
    [...columns].flatMap(([layer, keys]) =>
      keys.map((key, index) => {
        const [x, y] = [layer * (box.width + box.gapX), index * (box.height + box.gapY)];
        return [key, { x: x + 1, y: y + 1 }] as const;
      }),
    ),
  );
  const width = (Math.max(0, ...columns.keys()) + 1) * (box.width + box.gapX) - box.gapX + 2;
  const rows = Math.max(1, ...[...columns.values()].map((keys) => keys.length));
  const height = rows * (box.height + box.gapY) - box.gapY + 2;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls the graph.
    <section class="scroll" tabIndex={0} aria-label={label}>
      <svg class="graph" width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
        <title>{label}</title>
        {edges.map(([from, to]) => {
          const [start, end] = [places.get(from), places.get(to)];
          if (start === undefined || end === undefined) return null;
          const [x, y, toY] = [start.x + box.width, start.y + box.height / 2, end.y + box.height / 2];
          const middle = (x + end.x) / 2;
          return <path key={`${from} ${to}`} d={`M${x} ${y} C${middle} ${y} ${middle} ${toY} ${end.x} ${toY}`} />;
        })}
        {[...nodes].map(([key, { text, kind, href }]) => {
          const { x, y } = places.get(key) ?? { x: 0, y: 0 };
          const content = (
            <>
              <title>{`${text}, ${kind}`}</title>
              <rect x={x} y={y} width={box.width} height={box.height} rx="6" />
              <text x={x + 10} y={y + 19}>
                {shortened(text)}
              </text>
              <text x={x + 10} y={y + 36} class="hint">
                {shortened(kind)}
              </text>
            </>
          );
          return href === undefined ? (
            <g key={key}>{content}</g>
          ) : (
            <a key={key} href={href}>
              {content}
            </a>
          );
        })}
      </svg>
    </section>
  );
}
