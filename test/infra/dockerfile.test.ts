import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { sourceFiles } from "../../infra/image-sources.ts";
import { readDockerfile } from "../support/dockerfile.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const instructions = readDockerfile();
const of = (name: string) => instructions.filter((each) => each.name === name).map(({ rest }) => rest);
const lock = JSON.parse(readFileSync("package-lock.json", "utf8"));

test("the image starts from the Node that the project is tested with", () => {
  const stages = of("FROM").map((from) => from.split(" "));
  const bases = stages.map(([base]) => base).filter((base) => !stages.some(([, , name]) => name === base));
  const tags = new Set(bases.map((base) => base?.split("@")[0]));
  expect(tags).toEqual(new Set([`node:${lock.packages["node_modules/node"].version}-trixie-slim`]));
});

test("the image runs as a user that is not root, named by its number", () => {
  expect(of("USER")).toEqual(["1000:1000"]);
  expect(instructions.findIndex(({ name }) => name === "USER")).toBeGreaterThan(
    instructions.map(({ name }) => name).lastIndexOf("RUN"),
  );
});

test("the image installs by the lockfile, for production, and what the service needs alone", () => {
  expect(of("RUN")[0]).toMatch(/^npm ci --omit=dev --workspace=service /);
  expect(of("ADD")).toEqual([]);
});

test("the image knows every workspace that the lockfile names", () => {
  const { workspaces } = JSON.parse(readFileSync("package.json", "utf8"));
  const copied = of("COPY").join("\n");
  for (const workspace of workspaces) expect(copied).toContain(`${workspace}/package.json ${workspace}/`);
});

test("the image starts by commands that are arguments, so that signals reach the catalog", () => {
  for (const command of [...of("ENTRYPOINT"), ...of("CMD")]) expect(() => JSON.parse(command)).not.toThrow();
  const youngGeneration = ["--min-semi-space-size=16", "--max-semi-space-size=16"];
  expect(JSON.parse(of("ENTRYPOINT")[0] ?? "")).toEqual(["node", ...youngGeneration, "service/main.ts"]);
});

test.each([
  { status: 200, code: 0 },
  { status: 503, code: 1 },
])(
  "the image's health check exits with $code when the port of the settings answers $status",
  async ({ status, code }) => {
    const server = createServer((_, response) => response.writeHead(status).end()).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const [program, ...args]: string[] = JSON.parse(of("HEALTHCHECK")[0]?.replace(/^.*?CMD /, "") ?? "[]");
    expect(program).toBe("node");
    const check = spawn(process.execPath, args, { env: { TILTYARD_PORT: `${port}` } });
    expect((await once(check, "close"))[0]).toBe(code);
    server.close();
  },
);

test("the image's context has what is copied, and nothing of tests, tables or settings", () => {
  const kept = readFileSync(".dockerignore", "utf8").split("\n");
  expect(kept).toContain("*");
  const roots = kept.filter((line) => line.startsWith("!")).map((line) => line.slice(1));
  expect(roots.every((path) => globSync(path).length === 1)).toBe(true);
  expect(roots.filter((path) => /test|docs|Pulumi|data|\.env/.test(path))).toEqual(["test/package.json"]);
});

test("the image and the packages do not contain the data of a catalog that was started in a folder of sources", () => {
  const folder = temporaryFolder("tiltyard-sources-");
  mkdirSync(join(folder, "service/data"), { recursive: true });
  for (const file of ["service/main.ts", "service/data/development.key"]) writeFileSync(join(folder, file), "");
  expect(sourceFiles(folder, ["service/**/*.*"])).toEqual(["service/main.ts"]);
  expect(readFileSync(".dockerignore", "utf8").split("\n")).toContain("**/data");
});

test("the image's user can write to the data directory alone, and nothing secret is built in", () => {
  // Copied files stay owned by root, and no file runs with the rights of another user.
  expect(of("COPY").filter((copy) => copy.includes("--chown") || copy.includes("--chmod"))).toEqual([]);
  const ownership = of("RUN").filter((run) => /chown|chmod|setcap|useradd/.test(run));
  expect(ownership).toEqual(["mkdir /data && chown node:node /data"]);
  expect(of("VOLUME")).toEqual(["/data"]);
  expect(of("ARG")).toEqual([]);
  expect(of("ENV").join(" ")).not.toMatch(/KEY|TOKEN|SECRET|PASSWORD|DATABASE_URL|ALLOW_INSECURE/);
});

test("the image listens where no right is needed", () => {
  expect(Number(of("EXPOSE")[0])).toBeGreaterThan(1024);
});
