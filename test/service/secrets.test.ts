import { type AnyContract, contracts, type OperationName } from "@tiltyard/protocol";
import { expect, test } from "vitest";
import { httpRequest } from "../support/catalog.ts";
import { startProgram } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const key = "bootstrap-key-that-must-not-be-told-0123456789";
const wrong = { key: "wrong-key-that-must-not-be-told-0123456789", token: "d3Jvbmc.dG9rZW4.dGhhdC1pcy1zZWNyZXQ" };

test("no credential appears in the log or in a response, whatever is called and wherever it is", async () => {
  const folder = temporaryFolder("tiltyard-secrets-");
  const program = startProgram(["service/main.ts", "serve"], {
    TILTYARD_DATA_DIR: folder,
    TILTYARD_PORT: "0",
    TILTYARD_LOG_LEVEL: "trace",
    // The service rejects most of these requests.
    TILTYARD_FAILED_CREDENTIALS: "1000000",
    TILTYARD_BOOTSTRAP_API_KEY: key,
  });
  const url = /at (http:\S+)/.exec(await program.printed("curl"))?.[1] ?? "";
  const answers: string[] = [];
  /** Sends a request. @returns The status. */
  const send = async (path: string, init: RequestInit): Promise<number> => {
    const response = await fetch(url + path, init);
    answers.push(JSON.stringify([...response.headers]), await response.text());
    return response.status;
  };

  const form = (secret: string) => new URLSearchParams({ grant_type: "client_credentials", client_secret: secret });
  const basic = (secret: string) => ({ authorization: `Basic ${Buffer.from(`me:${secret}`).toString("base64")}` });
  const bought = await fetch(`${url}/oauth/token`, { method: "POST", body: form(key) });
  const { access_token: token } = (await bought.json()) as { access_token: string };

  const secrets = { key, token };
  const places = [secrets, wrong].flatMap((each) => [
    { headers: { authorization: `Bearer ${each.token}` }, identity: undefined },
    { headers: { authorization: `Bearer ${each.key}` }, identity: undefined },
    { headers: basic(each.key), identity: undefined },
    { headers: { "x-api-key": each.key }, identity: undefined },
    { headers: {}, identity: { api_key: each.key } },
    { headers: {}, identity: { auth_token: each.token } },
    // An error about a rejected value must name the field without the value.
    { headers: { "x-api-key": key }, identity: { api_key: [each.key], auth_token: { token: each.token } } },
  ]);
  const statuses = new Set<number>();
  for (const name of Object.keys(contracts) as OperationName[]) {
    const contract: AnyContract = contracts[name];
    for (const { headers, identity } of places) {
      const { path, init } = httpRequest(contract, { id: ["a", "b"], ...(identity !== undefined && { identity }) });
      const query = `${path.includes("?") ? "&" : "?"}api_key=${wrong.key}&access_token=${token}`;
      statuses.add(await send(path + query, { ...init, headers: { ...init.headers, ...headers } }));
    }
    const broken = `{"identity": {"api_key": "${key}"`;
    if (contract.methods.includes("POST"))
      statuses.add(await send(httpRequest(contract, { id: ["a"] }).path, { method: "POST", body: broken }));
  }
  for (const each of [wrong.key, wrong.token]) {
    await send("/oauth/token", { method: "POST", body: form(each) });
    await send("/oauth/token", { method: "POST", headers: basic(each), body: "grant_type=client_credentials" });
  }
  await send("/oauth/token", { method: "POST", body: `grant_type=password&client_secret=${key}` });
  await send(`/nothing?key=${key}`, { headers: { "x-api-key": key } });
  await send("/metrics", { headers: { "x-api-key": key } });

  program.child.kill("SIGTERM");
  const { stdout, stderr } = await program.finished;

  expect([...statuses]).toEqual(expect.arrayContaining([200, 400, 401, 404]));
  expect(stdout.split("\n").length).toBeGreaterThan(Object.keys(contracts).length * places.length);
  const told = [...answers, stdout, stderr].join("\n");
  for (const secret of [key, token, wrong.key, wrong.token, basic(key).authorization.slice(6)])
    expect(told.indexOf(secret), `${secret} is told`).toBe(-1);
});
