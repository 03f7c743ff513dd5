import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import * as pulumi from "@pulumi/pulumi";
import { messageOf, ownValue } from "@tiltyard/protocol";
import { parseAllDocuments, parse as parseYaml } from "yaml";

export interface ChartSource {
  /** The name of the chart in its repository, or the path of its folder or archive, which contains a slash. */
  readonly chart: string;
  /** The address of a repository with an `index.yaml`. */
  readonly repository: string;
  readonly version: string;
}

/** Reports whether a chart is named in its repository. Addresses of OCI registries and paths need no repository. */
export function isInRepository(chart: string): boolean {
  return !chart.includes("/");
}

/** A resource definition of Kubernetes. */
export interface Definition {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  // biome-ignore lint/suspicious/noExplicitAny: the schemas of another program.
  readonly spec: any;
}

const requestTimeoutMs = 60_000;
const tarBlock = 512;

/**
 * Reads the resource definitions of a chart, which are the files of its folder `crds`. Helm itself installs those that are
 * missing, and never upgrades them.
 *
 * @throws RunError when the chart cannot be read or has none.
 */
export async function readDefinitions(source: ChartSource): Promise<readonly Definition[]> {
  const { chart, version } = source;
  const definitions = await definitionsOf(source).catch((cause: unknown) => {
    throw unreadable(`${chart} ${version}: ${messageOf(cause)}`);
  });
  if (definitions.length === 0) throw unreadable(`${chart} ${version} has no folder crds`);
  return definitions;
}

function unreadable(problem: string): pulumi.RunError {
  return new pulumi.RunError(
    `operator: cannot read the resource definitions of the chart ${problem}. With operator.crds: false, Helm installs ` +
      "those that are missing, and upgrades none",
  );
}

async function definitionsOf({ chart, repository, version }: ChartSource): Promise<readonly Definition[]> {
  if (isInRepository(chart)) return parse(filesIn(await download(chart, repository, version)));
  if (!statSync(chart).isDirectory()) return parse(filesIn(readFileSync(chart)));
  const folder = join(chart, "crds");
  const names = existsSync(folder) ? readdirSync(folder).toSorted() : [];
  return parse(names.map((name) => readFileSync(join(folder, name), "utf8")));
}

function parse(files: readonly string[]): readonly Definition[] {
  const documents: (Definition | null)[] = files.flatMap((file) =>
    parseAllDocuments(file).map((document) => document.toJS()),
  );
  return documents.filter((each) => each?.kind === "CustomResourceDefinition") as Definition[];
}

interface Index {
  readonly entries?: Readonly<
    Record<string, readonly { readonly version: string; readonly urls: readonly string[] }[]>
  >;
}

async function download(chart: string, repository: string, version: string): Promise<Buffer> {
  const base = repository.endsWith("/") ? repository : `${repository}/`;
  const index: Index | null = parseYaml((await read(new URL("index.yaml", base))).toString("utf8"));
  const url = ownValue(index?.entries ?? {}, chart)?.find((entry) => entry.version.replace(/^v/, "") === version)
    ?.urls[0];
  if (url === undefined) throw new Error(`${base} does not list this version`);
  return read(new URL(url, base));
}

async function read(url: URL): Promise<Buffer> {
  const response = await fetch(url, { signal: AbortSignal.timeout(requestTimeoutMs) });
  if (!response.ok) throw new Error(`${url} responds with ${response.status}`);
  return Buffer.from(await response.arrayBuffer());
}

/** Returns the files of the folder `crds` in a gzipped tar archive. */
function filesIn(archive: Buffer): readonly string[] {
  const tar = gunzipSync(archive);
  const files: string[] = [];
  for (let at = 0; at + tarBlock <= tar.length; ) {
    const name = textAt(tar, at, 100);
    const size = Number.parseInt(textAt(tar, at + 124, 12), 8) || 0;
    const start = at + tarBlock;
    if (/^[^/]+\/crds\/[^/]+\.ya?ml$/.test(name)) files.push(tar.toString("utf8", start, start + size));
    at = start + Math.ceil(size / tarBlock) * tarBlock;
  }
  return files;
}

function textAt(tar: Buffer, start: number, length: number): string {
  return tar.toString("utf8", start, start + length).replace(/\0.*$/s, "");
}
