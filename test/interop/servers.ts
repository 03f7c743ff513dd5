import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { type LocalRay, startLocalRay } from "../../client/ray/local-ray.ts";
import { unusedPort } from "../../client/unused-port.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** A server for the tests of clients in a separate process. */
export interface TestServer {
  readonly url: string;
  stop(): Promise<void>;
}

const startDeadlineMs = 60_000;

/** Starts an AWS that moto serves. */
export async function startAws(): Promise<TestServer> {
  const port = await unusedPort();
  const server = join(import.meta.dirname, "python/aws_server.py");
  const args = [server, "-H", "127.0.0.1", "-p", `${port}`];
  const child = spawn(required("TILTYARD_TEST_PYTHON"), args, { stdio: "ignore" });
  return serving(child, `http://127.0.0.1:${port}`, "/moto-api/");
}

/** Starts a Google Cloud Storage that fake-gcs-server serves from files. */
export async function startGcs(): Promise<TestServer> {
  const port = await unusedPort();
  const program = join(import.meta.dirname, "gcs-server.ts");
  const folder = temporaryFolder("tiltyard gcs ");
  const child = spawn(process.execPath, [program, `${port}`, folder], { stdio: ["ignore", "ignore", "inherit"] });
  return serving(child, `http://127.0.0.1:${port}`, "/storage/v1/b?project=test");
}

/** Starts a Ray of this machine, whose jobs use the Python of the tests. */
export function startRay(): Promise<LocalRay> {
  return startLocalRay({ env: { ...process.env, PATH: pathWithPython() }, numCpus: 2 });
}

/** Returns a PATH with the `python` and `ray` of the tests. */
export function pathWithPython(): string {
  return `${dirname(required("TILTYARD_TEST_PYTHON"))}:${process.env.PATH}`;
}

/** Waits until a server answers. */
export async function serving(child: ChildProcess, url: string, path: string): Promise<TestServer> {
  const deadline = Date.now() + startDeadlineMs;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the server at ${url} ended with ${child.exitCode}`);
    const answered = await fetch(url + path).then(
      (response) => response.status < 500,
      () => false,
    );
    if (answered) return { url, stop: () => stop(child) };
    if (Date.now() > deadline) {
      await stop(child);
      throw new Error(`the server at ${url} did not answer in time`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function stop(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit");
  if (child.kill()) await ended;
}

/** Returns a setting that `run.ts` creates. */
export function required(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set: run these tests by npm run test:interop`);
  return value;
}
