import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer, json } from "node:stream/consumers";

/** The parts of Ray's Jobs API that the client uses. The interop tests use a real Ray. */
export interface TestDashboard {
  readonly url: string;
  readonly port: number;
  readonly packages: Map<string, Buffer>;
  readonly jobs: Map<string, TestJob>;
  /** Returns the output and the end of the next jobs. */
  script: (entrypoint: string) => Pick<TestJob, "logs" | "statuses" | "message">;
  /** The number of next connections that break before an answer. */
  breakNext: number;
  /** The number of next requests that succeed and lose their answers. */
  loseNext: number;
  /** The token that requests must have; undefined for none. */
  token: string | undefined;
  stop(): Promise<void>;
}

export interface TestJob {
  readonly entrypoint: string;
  // biome-ignore lint/suspicious/noExplicitAny: any submitted job.
  readonly runtime_env: any;
  readonly metadata?: Readonly<Record<string, string>>;
  /** The successive outputs of the job. The last one stays. */
  readonly logs: string[];
  readonly statuses: string[];
  readonly message?: string;
  /** The time of its end in milliseconds since 1970. */
  endTime?: number;
  errorType?: string;
  exitCode?: number;
}

export async function startTestDashboard(): Promise<TestDashboard> {
  const server = createServer(async (request, response) => {
    if (dashboard.breakNext > 0) {
      dashboard.breakNext--;
      return void request.socket.destroy();
    }
    const answer = (status: number, body: unknown) => {
      if (dashboard.loseNext > 0) {
        dashboard.loseNext--;
        return void request.socket.destroy();
      }
      return response.writeHead(status).end(typeof body === "string" ? body : JSON.stringify(body));
    };
    if (dashboard.token !== undefined && request.headers.authorization !== `Bearer ${dashboard.token}`)
      return void response.writeHead(401).end("Unauthorized: Missing authentication token");
    const path = new URL(request.url ?? "", "http://x").pathname;
    if (path.startsWith("/api/packages/")) {
      if (request.method === "GET") return void answer(dashboard.packages.has(path) ? 200 : 404, {});
      dashboard.packages.set(path, await buffer(request));
      return void answer(200, {});
    }
    if (request.method === "POST" && path === "/api/jobs/") {
      const body = (await json(request)) as Omit<TestJob, "logs" | "statuses" | "message"> & { submission_id?: string };
      const id = body.submission_id ?? `raysubmit_${dashboard.jobs.size + 1}`;
      if (dashboard.jobs.has(id)) return void answer(400, taken(id));
      dashboard.jobs.set(id, { ...body, ...dashboard.script(body.entrypoint) });
      return void answer(200, { submission_id: id });
    }
    const next = (values: string[]) => (values.length > 1 ? values.shift() : values[0]);
    const details = (id: string, job: TestJob) => ({
      submission_id: id,
      entrypoint: job.entrypoint,
      status: next(job.statuses),
      message: job.message ?? "it ended so",
      metadata: job.metadata,
      end_time: job.endTime ?? null,
      error_type: job.errorType ?? null,
      driver_exit_code: job.exitCode ?? null,
    });
    if (path === "/api/jobs/")
      return void answer(
        200,
        [...dashboard.jobs].map(([id, job]) => details(id, job)),
      );
    const [, id = "", what] = /^\/api\/jobs\/([^/]+)(?:\/(logs|stop))?$/.exec(path) ?? [];
    const job = dashboard.jobs.get(id);
    if (job === undefined) return void response.writeHead(404).end(`Job ${id} does not exist`);
    if (what === "logs") return void answer(200, { logs: next(job.logs) });
    if (what === "stop") {
      job.statuses.splice(0, job.statuses.length, "STOPPED");
      return void answer(200, { stopped: true });
    }
    if (request.method === "DELETE") {
      dashboard.jobs.delete(id);
      return void answer(200, {});
    }
    answer(200, details(id, job));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const dashboard: TestDashboard = {
    url: `http://127.0.0.1:${port}`,
    port,
    packages: new Map(),
    jobs: new Map(),
    script: () => ({ logs: ["done\n"], statuses: ["SUCCEEDED"] }),
    breakNext: 0,
    loseNext: 0,
    token: undefined,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return dashboard;
}

/** Returns Ray's error message, a stack trace inside a stack trace. */
function taken(id: string): string {
  return `Traceback (most recent call last):
RuntimeError: Request failed with status code 400: Traceback (most recent call last):
ValueError: Job with submission_id ${id} already exists. Please use a different submission_id.
.`;
}
