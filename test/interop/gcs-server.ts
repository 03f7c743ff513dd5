/**
 * A Google Cloud Storage for tests: gcs-server.ts PORT FOLDER. It consists of fake-gcs-server over a folder and a proxy
 * that adds its missing features: the condition of a rewrite, with which the catalog never replaces a manifest, and the
 * plain PUT and the listing of the XML API, which Lance uses. All other requests are forwarded unchanged.
 */
import { spawn } from "node:child_process";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { unusedPort } from "../../client/unused-port.ts";
import { storeKeepAliveMs } from "../support/faulty-proxy.ts";
import { required } from "./servers.ts";

const [port, folder = ""] = process.argv.slice(2);
const emulatorPort = await unusedPort();
const emulatorUrl = `http://127.0.0.1:${emulatorPort}`;
const emulator = spawn(
  required("TILTYARD_TEST_FAKE_GCS_SERVER"),
  [
    ...["-scheme", "http", "-host", "127.0.0.1", "-port", `${emulatorPort}`, "-filesystem-root", folder],
    ...["-external-url", `http://127.0.0.1:${port}`, "-public-host", `127.0.0.1:${emulatorPort}`],
  ],
  { stdio: "ignore" },
);
process.on("exit", () => emulator.kill("SIGKILL"));
process.on("SIGTERM", () => process.exit());
emulator.on("exit", () => process.exit(1));

createServer({ keepAliveTimeout: storeKeepAliveMs }, (request, response) => {
  const isRead = ["GET", "HEAD"].includes(request.method ?? "GET");
  const answered = isRead ? answer(request, response) : oneByOne(() => answer(request, response));
  answered.catch((error) => response.writeHead(502).end(String(error)));
}).listen(Number(port), "127.0.0.1");

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? "/", emulatorUrl);
  const { method = "GET" } = request;
  const target = /\/rewriteTo(\/b\/[^/]+\/o\/[^/]+)$/.exec(url.pathname)?.[1];
  if (target !== undefined && url.searchParams.get("ifGenerationMatch") === "0")
    return rewriteIfFree(request, response, url, target);
  const [, bucket, name] = /^\/(?!upload\/|storage\/)([^/]+)\/?(.*)$/.exec(url.pathname) ?? [];
  if (bucket !== undefined && name === "" && method === "GET") return list(response, bucket, url.searchParams);
  if (bucket !== undefined && name && method === "PUT") return upload(request, response, bucket, name);
  await passOn(request, response, url);
}

/** The changes in progress. Checking a condition and applying the change are atomic, as in the real store. */
let changes: Promise<void> = Promise.resolve();
function oneByOne(work: () => Promise<void>): Promise<void> {
  const mine = changes.then(work);
  changes = mine.catch(() => {});
  return mine;
}

async function rewriteIfFree(
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
  target: string,
): Promise<void> {
  const taken = (await fetch(`${emulatorUrl}/storage/v1${target}`)).ok;
  if (!taken) return passOn(request, response, url);
  response.writeHead(412, { "content-type": "application/json" });
  response.end(JSON.stringify({ error: { code: 412, message: "conditionNotMet" } }));
}

/** Converts a PUT of the XML API to an upload of the JSON API. */
async function upload(request: IncomingMessage, response: ServerResponse, bucket: string, name: string): Promise<void> {
  const query = new URLSearchParams({ uploadType: "media", name: decodeURIComponent(name) });
  const condition = request.headers["x-goog-if-generation-match"];
  if (typeof condition === "string") query.set("ifGenerationMatch", condition);
  const body = await buffer(request);
  const answered = await fetch(`${emulatorUrl}/upload/storage/v1/b/${bucket}/o?${query}`, { method: "POST", body });
  if (!answered.ok) return void response.writeHead(answered.status).end(await answered.text());
  const { etag, generation } = (await answered.json()) as { etag: string; generation: string };
  response.writeHead(200, { etag: `"${etag}"`, "x-goog-generation": generation }).end();
}

interface Listing {
  readonly items?: readonly { name: string; updated: string; size: string; etag: string }[];
  readonly prefixes?: readonly string[];
}

/** Converts a listing of the JSON API to one of the XML API. */
async function list(response: ServerResponse, bucket: string, asked: URLSearchParams): Promise<void> {
  const query = new URLSearchParams({ maxResults: "100000" });
  for (const name of ["prefix", "delimiter"]) if (asked.has(name)) query.set(name, asked.get(name) ?? "");
  const answered = await fetch(`${emulatorUrl}/storage/v1/b/${bucket}/o?${query}`);
  const { items = [], prefixes = [] } = (await answered.json()) as Listing;
  const objects = items.map(
    ({ name, updated, size, etag }) =>
      `<Contents><Key>${xml(name)}</Key><LastModified>${updated}</LastModified><Size>${size}</Size><ETag>${xml(etag)}</ETag></Contents>`,
  );
  const folders = prefixes.map((prefix) => `<CommonPrefixes><Prefix>${xml(prefix)}</Prefix></CommonPrefixes>`);
  response.writeHead(200, { "content-type": "application/xml" });
  response.end(`<ListBucketResult>${[...objects, ...folders].join("")}</ListBucketResult>`);
}

function xml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}

const hopByHop = ["connection", "content-length", "expect", "host", "keep-alive", "transfer-encoding"];

async function passOn(request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> {
  const { method = "GET" } = request;
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers))
    if (!hopByHop.includes(name)) headers.set(name, String(value));
  headers.set("accept-encoding", "identity");
  const body = ["GET", "HEAD"].includes(method) ? null : await buffer(request);
  const answered = await fetch(url, { method, headers, body, redirect: "manual" });
  const content = Buffer.from(await answered.arrayBuffer());
  const kept = [...answered.headers].filter(([name]) => name === "content-length" || !hopByHop.includes(name));
  response.writeHead(answered.status, Object.fromEntries(kept)).end(content);
}
