import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readDefinitions } from "../../infra/components/ray/chart-definitions.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const kinds = ["raycluster", "rayjob"];
const definitionOf = (kind: string) =>
  `---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: ${kind}s.ray.io\nspec:\n  names: {plural: ${kind}s}\n  versions: [{schema: {x-kubernetes-preserve-unknown-fields: true}}]\n`;
const files = {
  "kuberay-operator/Chart.yaml": "name: kuberay-operator\n",
  "kuberay-operator/crds/ray.io_rayclusters.yaml": definitionOf("raycluster"),
  "kuberay-operator/templates/deployment.yaml": `{{ not: yaml }}\n${"#".repeat(700)}\n`,
  "kuberay-operator/crds/ray.io_rayjobs.yaml": definitionOf("rayjob"),
};
const index = `
apiVersion: v1
entries:
  kuberay-operator:
    - { version: 1.7.0, urls: ["kuberay-operator-1.7.0.tgz"] }
    - { version: 1.6.2, urls: ["charts/kuberay-operator-1.6.2.tgz"] }
    - { version: 1.5.0, urls: ["absent.tgz"] }
`;

/** A header and the content of each file, in blocks of 512 bytes, as tar writes them. */
function archive(content: Readonly<Record<string, string>>): Buffer {
  const blocks = Object.entries(content).flatMap(([name, text]) => {
    const header = Buffer.alloc(512);
    header.write(name, 0);
    header.write(`${Buffer.byteLength(text).toString(8).padStart(11, "0")}\0`, 124);
    return [header, Buffer.from(text), Buffer.alloc((512 - (Buffer.byteLength(text) % 512)) % 512)];
  });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)]));
}

describe("the resource definitions of a chart", () => {
  const folder = temporaryFolder("tiltyard-chart-");
  const served: Readonly<Record<string, Buffer>> = {
    "/stable/index.yaml": Buffer.from(index),
    "/stable/charts/kuberay-operator-1.6.2.tgz": archive(files),
    "/stable/kuberay-operator-1.7.0.tgz": archive({ "kuberay-operator/Chart.yaml": "name: kuberay-operator\n" }),
  };
  const server = createServer(({ url = "" }, response) =>
    response.writeHead(served[url] === undefined ? 404 : 200).end(served[url]),
  );
  let repository: string;
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    repository = `http://127.0.0.1:${(server.address() as AddressInfo).port}/stable`;
  });
  afterAll(() => server.close());
  const read = async (chart: string, version = "1.6.2") =>
    (await readDefinitions({ chart, repository, version })).map(({ spec }) => spec.names.plural);
  const all = kinds.map((kind) => `${kind}s`);

  test("are read from the archive that a repository lists for the version", async () => {
    expect(await read("kuberay-operator")).toEqual(all);
  });

  test("have fields as they are written", async () => {
    const [first] = await readDefinitions({ chart: "kuberay-operator", repository, version: "1.6.2" });
    expect(first?.spec.versions).toEqual([{ schema: { "x-kubernetes-preserve-unknown-fields": true } }]);
  });

  test("are read from an archive and from a folder", async () => {
    const path = join(folder, "chart.tgz");
    writeFileSync(path, archive(files));
    expect(await read(path)).toEqual(all);
    mkdirSync(join(folder, "chart/crds"), { recursive: true });
    for (const kind of kinds) writeFileSync(join(folder, `chart/crds/${kind}.yaml`), definitionOf(kind));
    expect(await read(join(folder, "chart"))).toEqual(all);
  });

  test.each([
    ["a version that the repository does not list", "1.4.0", "does not list this version"],
    ["an archive that does not exist", "1.5.0", "absent.tgz responds with 404"],
    ["a chart without definitions", "1.7.0", "kuberay-operator 1.7.0 has no folder crds"],
  ])("are an error without a stack trace for %s", async (_, version, problem) => {
    await expect(read("kuberay-operator", version)).rejects.toThrow(problem);
    await expect(read("kuberay-operator", version)).rejects.toThrow("operator.crds: false");
  });
});
