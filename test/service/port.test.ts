/** The sockets that a service listens with. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect, Server } from "node:net";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Exchange } from "../../service/http/exchange.ts";
import { claimPort, listenOnPort } from "../../service/http/port.ts";
import { answer, close } from "../../service/http/server.ts";

const host = "127.0.0.1";

test("a rush of connections is accepted in few turns of the event loop", async () => {
  const server = createServer();
  const others = await listenOnPort(server, { host, port: 0 });
  const { port } = server.address() as AddressInfo;
  const rush = 256;
  let accepted = 0;
  server.on("connection", () => {
    accepted += 1;
  });
  // The kernel connects them, while this process waits and accepts none.
  const program = `let left = ${rush};
    const onConnect = () => --left === 0 && process.exit();
    for (let each = 0; each < ${rush}; each += 1) require("node:net").connect(${port}, "${host}", onConnect);`;
  execFileSync(process.execPath, ["-e", program]);
  let turns = 0;
  while (accepted < rush) {
    await new Promise(setImmediate);
    turns += 1;
  }
  await close(server, others);
  expect(turns).toBeLessThan(rush / 4);
});

test("a port that a service shares among its sockets is taken for others", async () => {
  const server = createServer();
  const others = await listenOnPort(server, { host, port: 0 });
  const { port } = server.address() as AddressInfo;
  await expect(claimPort({ host, port })).rejects.toMatchObject({ code: "EADDRINUSE" });
  await close(server, others);
  using claimed = await claimPort({ host, port });
  expect(claimed.port).toBe(port);
});

test.runIf(process.platform === "linux")("a port that a service claimed is taken before it listens", async () => {
  const first = await claimPort({ host, port: 0 });
  const { port } = first;
  await expect(claimPort({ host, port })).rejects.toMatchObject({
    code: "EADDRINUSE",
    message: expect.stringContaining(`${host}:${port}`),
  });
  first[Symbol.dispose]();
  using second = await claimPort({ host, port });
  expect(second.port).toBe(port);
});

test("a port is claimed where a sandbox allows no abstract socket", async () => {
  const { listen } = Server.prototype;
  const listening = vi.spyOn(Server.prototype, "listen");
  listening.mockImplementation(function (this: Server, ...args: unknown[]) {
    if (listening.mock.calls.length === 1) return Reflect.apply(listen, this, args) as Server;
    setImmediate(() => this.emit("error", Object.assign(new Error("permission denied"), { code: "EACCES" })));
    return this;
  });
  onTestFinished(() => listening.mockRestore());
  using claimed = await claimPort({ host, port: 0 });
  expect(claimed.port).toBeGreaterThan(0);
});

test("a service that gets one of its sockets only does not listen at all", async () => {
  const { listen } = Server.prototype;
  const server = createServer();
  const listening = vi.spyOn(Server.prototype, "listen");
  listening.mockImplementation(function (this: Server, ...args: unknown[]) {
    if (listening.mock.calls.length <= 2) return Reflect.apply(listen, this, args) as Server;
    setImmediate(() => this.emit("error", new Error("too many open files")));
    return this;
  });
  onTestFinished(() => listening.mockRestore());
  await expect(listenOnPort(server, { host, port: 0 })).rejects.toThrow("too many open files");
  expect(server.listening).toBe(false);
});

test("a server that is closed finishes the requests of all its sockets", async () => {
  const responses: ServerResponse[] = [];
  const server = createServer((_, response) => responses.push(response));
  const others = await listenOnPort(server, { host, port: 0 });
  const { port } = server.address() as AddressInfo;
  const answers = Array.from({ length: 64 }, () => fetch(`http://${host}:${port}`));
  while (responses.length < answers.length) await once(server, "request");
  const closed = close(server, others);
  for (const response of responses) response.end("answered");
  for (const answer of answers) expect(await (await answer).text()).toBe("answered");
  await closed;
  using claimed = await claimPort({ host, port });
  expect(claimed.port).toBe(port);
});

test("a request that comes while the server closes is answered, and its connection is closed", async () => {
  const server = createServer();
  const first = Promise.withResolvers<void>();
  const connections = { begin: () => undefined };
  const serve = async ({ path, outgoing }: Exchange) => {
    if (path === "/first") await first.promise;
    outgoing.end(path);
  };
  answer(server, serve, connections);
  const others = await listenOnPort(server, { host, port: 0 });
  const { port } = server.address() as AddressInfo;
  const socket = connect(port, host).setEncoding("utf8");
  const send = (path: string) => socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
  send("/first");
  await once(server, "request");
  const closed = close(server, others);
  send("/second");
  send("/third");
  await once(server, "request");
  first.resolve();
  const answers = (await text(socket)).split("HTTP/1.1 200 OK").slice(1);
  expect(answers.map((each) => /connection: close/i.test(each))).toEqual([false, true]);
  await closed;
});
