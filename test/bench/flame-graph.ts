import { z } from "zod";

/** What `node --cpu-prof` writes, as far as it is needed. */
export const CpuProfile = z.object({
  nodes: z.array(
    z.object({
      id: z.number(),
      callFrame: z.object({ functionName: z.string(), url: z.string(), lineNumber: z.number() }),
      children: z.array(z.number()).optional(),
    }),
  ),
  /** The node of each sample, and the microseconds until the next one. */
  samples: z.array(z.number()),
  timeDeltas: z.array(z.number()),
});
export type CpuProfile = z.infer<typeof CpuProfile>;

interface Frame {
  readonly name: string;
  /** Where the function is, for people. */
  readonly place: string;
  /** Time of it and of what it called. */
  us: number;
  readonly callees: Map<string, Frame>;
}

const width = 1200;
const rowHeight = 17;
const headHeight = 28;
const pixelsPerLetter = 6.6;
/** What takes less of the whole is left out. */
const shareMin = 0.002;
const colours = { service: "#f2a65a", packages: "#e8d174", node: "#9fc5a8", engine: "#b9b4c7" };

/**
 * @param lastSeconds How much of the profile's end is drawn: before that the program started.
 * @returns An SVG in which each call is as wide as its share of the working time, under its caller.
 */
export function drawFlameGraph(profile: CpuProfile, title: string, lastSeconds: number): string {
  const root = sumUp(profile, lastSeconds * 1_000_000);
  const shapes: string[] = [];
  let deepest = 0;
  const draw = (frame: Frame, x: number, depth: number): void => {
    const share = frame.us / root.us;
    if (share < shareMin) return;
    deepest = Math.max(deepest, depth);
    const wide = share * width;
    const label = frame.name.slice(0, Math.floor(wide / pixelsPerLetter));
    shapes.push(
      `<g><title>${escapeXml(`${frame.name} ${frame.place} ${(share * 100).toFixed(1)} %`)}</title>` +
        `<rect x="${x.toFixed(1)}" y="${headHeight + depth * rowHeight}" width="${wide.toFixed(1)}" height="${rowHeight - 1}" fill="${colourOf(frame)}"/>` +
        (label.length < 3
          ? ""
          : `<text x="${(x + 2).toFixed(1)}" y="${headHeight + depth * rowHeight + 12}">${escapeXml(label)}</text>`) +
        "</g>",
    );
    let left = x;
    for (const callee of [...frame.callees.values()].toSorted((one, other) => other.us - one.us)) {
      draw(callee, left, depth + 1);
      left += (callee.us / root.us) * width;
    }
  };
  draw(root, 0, 0);
  const height = headHeight + (deepest + 1) * rowHeight;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="monospace" font-size="11">\n` +
    `<title>${escapeXml(title)}</title>\n` +
    `<rect width="100%" height="100%" fill="#fff"/><text x="4" y="18" font-size="13">${escapeXml(title)}</text>\n` +
    `${shapes.join("\n")}\n</svg>\n`
  );
}

/** Calls of one function by the same callers are one frame. */
function sumUp({ nodes, samples, timeDeltas }: CpuProfile, lastUs: number): Frame {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const callers = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)));
  const root = frameOf("all of the main thread's work", "");
  let leftUs = timeDeltas.reduce((sum, us) => sum + us, 0);
  samples.forEach((sample, index) => {
    leftUs -= timeDeltas[index] ?? 0;
    if (leftUs > lastUs) return;
    const stack = [];
    for (let id: number | undefined = sample; id !== undefined; id = callers.get(id)) stack.unshift(byId.get(id));
    // Waiting for requests is no work.
    if (stack.at(-1)?.callFrame.functionName === "(idle)") return;
    const us = timeDeltas[index] ?? 0;
    root.us += us;
    let frame = root;
    for (const { callFrame } of stack.filter((node) => node !== undefined)) {
      if (callFrame.functionName === "(root)") continue;
      const place = placeOf(callFrame.url);
      const name = callFrame.functionName || `(line ${callFrame.lineNumber + 1})`;
      const key = `${name} ${place}`;
      const callee = frame.callees.get(key) ?? frameOf(name, place);
      frame.callees.set(key, callee);
      callee.us += us;
      frame = callee;
    }
  });
  return root;
}

function frameOf(name: string, place: string): Frame {
  return { name, place, us: 0, callees: new Map() };
}

/** A path inside the project, a package or a module of Node: no path of this machine. */
function placeOf(url: string): string {
  const [, inPackage] = /.*\/node_modules\/(.+)$/.exec(url) ?? [];
  return inPackage ?? /\/((?:service|protocol)\/.+)$/.exec(url)?.[1] ?? url;
}

function colourOf({ place }: Frame): string {
  if (/^(service|protocol)\//.test(place)) return colours.service;
  if (place.startsWith("node:")) return colours.node;
  return place === "" ? colours.engine : colours.packages;
}

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
