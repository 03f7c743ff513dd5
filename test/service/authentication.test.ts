import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import {
  type CryptoKey,
  exportJWK,
  exportSPKI,
  generateKeyPair,
  importJWK,
  type JWK,
  type JWTHeaderParameters,
  SignJWT,
} from "jose";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { readConfig } from "../../service/config.ts";
import { createLog } from "../../service/log.ts";
import { startService } from "../../service/start.ts";
import { readText, startTestCatalog, type TestCatalog, useCatalog } from "../support/catalog.ts";
import { readWhole } from "../support/database.ts";
import { Issuer } from "../support/issuer.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

async function statusWith(catalog: TestCatalog, headers: Record<string, string>, body = "{}"): Promise<number> {
  const response = await catalog.fetch("/v1/namespace/$/describe", { method: "POST", body, headers });
  return response.status;
}

describe("a token of an OIDC issuer", () => {
  const issuer = new Issuer();
  let catalog: TestCatalog;
  const bearer = (token: string) => statusWith(catalog, { authorization: `Bearer ${token}` });
  const now = () => Math.floor(Date.now() / 1000);

  beforeAll(async () => {
    await issuer.start();
    catalog = await startTestCatalog({
      TILTYARD_AUTH: "oidc",
      TILTYARD_OIDC_ISSUER: issuer.url,
      TILTYARD_OIDC_AUDIENCE: "tiltyard",
    });
    await catalog.call("putGrant", { id: [], principal: "oidc:ada", role: "reader" });
  });
  afterAll(async () => {
    issuer.stop();
    await catalog.stop();
  });

  test("speaks for its subject, whose grants count", async () => {
    expect(await bearer(await issuer.token())).toBe(200);
    expect(await bearer(await issuer.token({ sub: "stranger" }))).toBe(403);
  });

  test.each<[string, () => Record<string, unknown>]>([
    ["of another issuer", () => ({ iss: "https://elsewhere.example" })],
    ["for another audience", () => ({ aud: "something-else" })],
    ["that has expired", () => ({ exp: now() - 120 })],
    ["that never expires", () => ({ exp: undefined })],
    ["that is not valid yet", () => ({ nbf: now() + 120 })],
    ["without a subject", () => ({ sub: undefined })],
    ["with an empty subject", () => ({ sub: "" })],
  ])("is refused %s", async (_, claims) => {
    expect(await bearer(await issuer.token(claims()))).toBe(401);
  });

  test.each<[string, unknown]>([
    ["a number", 5],
    ["a list", ["bootstrap"]],
    ["an object", { name: "ada" }],
    ["true", true],
    ["null", null],
    ["too long", "x".repeat(300)],
    ["with a control character", "\x018f 1"],
    ["a lone surrogate", "\ud800"],
  ])("is refused when its subject is %s", async (_, sub) => {
    expect(await bearer(await issuer.token({ sub }))).toBe(401);
  });

  test.each([
    "bootstrap",
    "runner",
    "development",
    "operator",
    "owner",
    "job:ns$1 for ada",
    "oidc:ada",
    "Ada",
    "ada ",
    "*",
    "__proto__",
  ])("has none of the roles of %s, which is another principal's name", async (sub) => {
    await catalog.keyFor("owner", { $: "admin" });
    const headers = { authorization: `Bearer ${await issuer.token({ sub })}` };
    expect(await statusWith(catalog, headers)).toBe(403);
    const caller = await catalog.fetch("/management/v1/caller/describe", { headers });
    expect(await caller.json()).toEqual({ principal: `oidc:${sub}`, grants: [] });
  });

  test("may be off by a minute from this clock", async () => {
    expect(await bearer(await issuer.token({ exp: now() - 30 }))).toBe(200);
    expect(await bearer(await issuer.token({ nbf: now() + 30, iat: now() + 30 }))).toBe(200);
  });

  test("is refused when it is not signed by the issuer's key", async () => {
    const stranger = new Issuer();
    await stranger.start();
    expect(await bearer(await stranger.token({ iss: issuer.url }))).toBe(401);
    stranger.stop();
    const [header, , signature] = (await issuer.token()).split(".");
    const forged = Buffer.from(JSON.stringify({ iss: issuer.url, aud: "tiltyard", sub: "root", exp: now() + 60 }));
    expect(await bearer(`${header}.${forged.toString("base64url")}.${signature}`)).toBe(401);
  });

  test("is refused without a signature and with a signature by a public value", async () => {
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const payload = encode({ iss: issuer.url, aud: "tiltyard", sub: "ada", exp: now() + 60 });
    expect(await bearer(`${encode({ alg: "none" })}.${payload}.`)).toBe(401);
    const jwks = await (await fetch(`${issuer.url}/jwks`)).text();
    const claims = { iss: issuer.url, aud: "tiltyard", sub: "ada", exp: now() + 60 };
    const confused = await new SignJWT(claims).setProtectedHeader({ alg: "HS256" }).sign(Buffer.from(jwks));
    expect(await bearer(confused)).toBe(401);
  });

  test("is refused when it names its own key", async () => {
    const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
    const jwk = await exportJWK(publicKey);
    const claims = { iss: issuer.url, aud: "tiltyard", sub: "ada", exp: now() + 60 };
    const headers: JWTHeaderParameters[] = [
      { alg: "ES256", jwk },
      { alg: "ES256", kid: "first", jwk },
      { alg: "ES256", jku: `${issuer.url}/jwks`, x5u: `${issuer.url}/jwks` },
      { alg: "ES256", kid: "../../etc/passwd" },
      { alg: "ES256", kid: `${issuer.url}/jwks` },
      { alg: "ES256", kid: "__proto__" },
      { alg: "ES256", kid: "' or 1=1 --\0" },
    ];
    for (const header of headers)
      expect(await bearer(await new SignJWT(claims).setProtectedHeader(header).sign(privateKey))).toBe(401);
  });

  test("is refused when it uses the public key, in any form, as a shared secret", async () => {
    const { keys } = (await (await fetch(`${issuer.url}/jwks`)).json()) as { keys: JWK[] };
    const [jwk = {}] = keys;
    const pem = await exportSPKI((await importJWK(jwk, "RS256")) as CryptoKey);
    const claims = { iss: issuer.url, aud: "tiltyard", sub: "ada", exp: now() + 60 };
    for (const secret of [pem, pem.trim(), JSON.stringify(jwk), jwk.n ?? ""])
      for (const alg of ["HS256", "HS384", "HS512"]) {
        const confused = new SignJWT(claims).setProtectedHeader({ alg, kid: "first" });
        // jose rejects secrets of less than 512 bits, which is not the subject of this test.
        expect(await bearer(await confused.sign(Buffer.from(secret.padEnd(64))))).toBe(401);
      }
  });

  test("is refused when it is huge, in any place", async () => {
    const huge = await issuer.token({ filler: "x".repeat(20_000) });
    const body = JSON.stringify({ identity: { auth_token: huge } });
    const response = await catalog.fetch("/v1/namespace/$/describe", { method: "POST", body, headers: {} });
    expect([response.status, (await response.json()) as object]).toMatchObject([
      401,
      { detail: "the token is too long" },
    ]);
  });

  test("is refused when it has a critical header that is not understood, or none of the known types", async () => {
    const [, payload = "", signature = ""] = (await issuer.token()).split(".");
    for (const header of [{ alg: "RS256", kid: "first", crit: ["b64"], b64: false }, { alg: "rs256" }, {}, [], null]) {
      const encoded = Buffer.from(JSON.stringify(header)).toString("base64url");
      expect(await bearer(`${encoded}.${payload}.${signature}`)).toBe(401);
    }
  });

  test.each(["", "x", "a.b.c", `${"x".repeat(12_000)}.y.z`])("is refused when it is malformed", async (token) => {
    expect(await bearer(token)).toBe(401);
  });

  test("is refused with the name of the right header if it is an API key", async () => {
    for (const each of [catalog, await startTestCatalog()]) {
      const headers = { authorization: `Bearer ${each.adminKey}` };
      const refused = await each.fetch("/v1/namespace/$/describe", { method: "POST", headers });
      expect(refused.status).toBe(401);
      expect(await refused.json()).toMatchObject({ detail: expect.stringContaining("x-api-key") });
      if (each !== catalog) await each.stop();
    }
  });

  test("is accepted with a new key once the issuer has rotated to it", async () => {
    const rotating = new Issuer();
    await rotating.start();
    const own = await startTestCatalog({
      TILTYARD_AUTH: "oidc",
      TILTYARD_OIDC_ISSUER: rotating.url,
      TILTYARD_OIDC_AUDIENCE: "tiltyard",
      TILTYARD_OIDC_JWKS_URL: `${rotating.url}/jwks`,
    });
    await own.call("putGrant", { id: [], principal: "oidc:ada", role: "reader" });
    await rotating.rotate("second", "ES256");
    const token = await rotating.token({}, { kid: "second", alg: "ES256" });
    expect(await statusWith(own, { authorization: `Bearer ${token}` })).toBe(200);
    rotating.stop();
    await own.stop();
  });

  test("is accepted with a new key a second after the keys of the issuer were fetched", async () => {
    const rotating = new Issuer();
    await rotating.start();
    const own = await startTestCatalog(rotating.settings);
    await own.call("putGrant", { id: [], principal: "oidc:ada", role: "reader" });
    const status = async (kid: string) =>
      statusWith(own, { authorization: `Bearer ${await rotating.token({ jti: randomUUID() }, { kid })}` });
    vi.useFakeTimers({ toFake: ["performance"] });
    try {
      expect(await status("first")).toBe(200);
      await rotating.rotate("second");
      vi.advanceTimersByTime(1_000);
      expect(await status("second")).toBe(200);
      expect(await status("first")).toBe(401);
    } finally {
      vi.useRealTimers();
      rotating.stop();
      await own.stop();
    }
  });

  test("is refused a minute after the issuer withdrew its key although the clock was set back", async () => {
    const withdrawing = new Issuer();
    await withdrawing.start();
    const own = await startTestCatalog(withdrawing.settings);
    await own.call("putGrant", { id: [], principal: "oidc:ada", role: "reader" });
    const status = async () =>
      statusWith(own, { authorization: `Bearer ${await withdrawing.token({ jti: randomUUID() })}` });
    vi.useFakeTimers({ toFake: ["Date", "performance"] });
    try {
      expect(await status()).toBe(200);
      vi.setSystemTime(Date.now() - 3_600_000);
      await withdrawing.rotate("second");
      vi.advanceTimersByTime(60_000);
      expect(await status()).toBe(401);
    } finally {
      vi.useRealTimers();
      withdrawing.stop();
      await own.stop();
    }
  });

  test("is refused a minute after the issuer withdrew its key although the last fetch of the keys had failed", async () => {
    const recovered = new Issuer();
    await recovered.start();
    const own = await startTestCatalog(recovered.settings);
    await own.call("putGrant", { id: [], principal: "oidc:ada", role: "reader" });
    const status = async () =>
      statusWith(own, { authorization: `Bearer ${await recovered.token({ jti: randomUUID() })}` });
    vi.useFakeTimers({ toFake: ["performance"] });
    try {
      expect(await status()).toBe(200);
      recovered.keysAvailable = false;
      vi.advanceTimersByTime(30_000);
      expect(await status()).toBe(200);
      recovered.keysAvailable = true;
      await recovered.rotate("second");
      vi.advanceTimersByTime(60_000);
      expect(await status()).toBe(401);
    } finally {
      vi.useRealTimers();
      recovered.stop();
      await own.stop();
    }
  });

  test("does not wait for an issuer that failed before and now does not respond", async () => {
    const stuck = new Issuer();
    await stuck.start();
    const own = await startTestCatalog(stuck.settings);
    await own.call("putGrant", { id: [], principal: "oidc:ada", role: "reader" });
    const status = async () => statusWith(own, { authorization: `Bearer ${await stuck.token({ jti: randomUUID() })}` });
    vi.useFakeTimers({ toFake: ["performance"] });
    try {
      expect(await status()).toBe(200);
      stuck.keysAvailable = false;
      vi.advanceTimersByTime(30_000);
      expect(await status()).toBe(200);
      stuck.isHolding = true;
      vi.advanceTimersByTime(1_000);
      expect(await status()).toBe(200);
      await vi.waitFor(() => expect(stuck.held).toBe(1));
    } finally {
      vi.useRealTimers();
      stuck.stop();
      await own.stop();
    }
  });

  test("is checked with the last keys while the log warns once that the issuer fails", async () => {
    const failing = new Issuer();
    await failing.start();
    const log = createLog("silent");
    const warn = vi.spyOn(log, "warn");
    const settings = { TILTYARD_PORT: "0", TILTYARD_DATA_DIR: temporaryFolder("tiltyard-issuer-") };
    const service = await startService(readConfig({ ...settings, ...failing.settings }), log);
    const status = async () => {
      const headers = { authorization: `Bearer ${await failing.token({ jti: randomUUID() })}` };
      return (await fetch(`${service.url}/v1/namespace/$/list`, { headers })).status;
    };
    vi.useFakeTimers({ toFake: ["performance"] });
    try {
      expect(await status()).toBe(403);
      failing.keysAvailable = false;
      vi.advanceTimersByTime(30_000);
      expect(await status()).toBe(403);
      vi.advanceTimersByTime(1_000);
      expect(await status()).toBe(403);
      await vi.waitFor(() => expect(failing.requests).toBe(5));
      const expected = "the keys of the token issuer cannot be fetched; the last ones stay valid for an hour";
      expect(warn.mock.calls).toEqual([[{ err: expect.any(Error) }, expected]]);
    } finally {
      vi.useRealTimers();
      failing.stop();
      await service.stop();
    }
  });

  test("is accepted with a new key after the issuer has moved its keys", async () => {
    const moving = new Issuer();
    await moving.start();
    const own = await startTestCatalog(moving.settings);
    await own.call("putGrant", { id: [], principal: "oidc:ada", role: "reader" });
    const status = async (kid: string) =>
      statusWith(own, { authorization: `Bearer ${await moving.token({ jti: randomUUID() }, { kid })}` });
    vi.useFakeTimers({ toFake: ["performance"] });
    try {
      expect(await status("first")).toBe(200);
      moving.keysPath = "/moved/jwks";
      await moving.rotate("second");
      vi.advanceTimersByTime(1_000);
      expect(await status("second")).toBe(401);
      vi.advanceTimersByTime(1_000);
      expect(await status("second")).toBe(200);
    } finally {
      vi.useRealTimers();
      moving.stop();
      await own.stop();
    }
  });

  test("is refused a minute after the issuer withdrew its key, but not while the issuer is unavailable for less than an hour", async () => {
    const withdrawing = new Issuer();
    await withdrawing.start();
    const own = await startTestCatalog({
      TILTYARD_AUTH: "oidc",
      TILTYARD_OIDC_ISSUER: withdrawing.url,
      TILTYARD_OIDC_AUDIENCE: "tiltyard",
    });
    await own.call("putGrant", { id: [], principal: "oidc:ada", role: "reader" });
    const status = async () =>
      statusWith(own, { authorization: `Bearer ${await withdrawing.token({ exp: Date.now() / 1000 + 60 })}` });
    vi.useFakeTimers({ toFake: ["Date", "performance"] });
    try {
      expect(await status()).toBe(200);
      withdrawing.available = false;
      vi.advanceTimersByTime(59 * 60_000);
      expect(await status()).toBe(200);
      vi.advanceTimersByTime(2 * 60_000);
      expect(await status()).toBe(503);
      withdrawing.available = true;
      vi.advanceTimersByTime(1_000);
      expect(await status()).toBe(200);
      await withdrawing.rotate("second");
      vi.advanceTimersByTime(30_000);
      expect(await status()).toBe(401);
    } finally {
      vi.useRealTimers();
      withdrawing.stop();
      await own.stop();
    }
  });

  test("gets 503 while the issuer's keys are unavailable, and is accepted afterwards", async () => {
    const flaky = new Issuer();
    await flaky.start();
    flaky.available = false;
    const own = await startTestCatalog({
      TILTYARD_AUTH: "oidc",
      TILTYARD_OIDC_ISSUER: flaky.url,
      TILTYARD_OIDC_AUDIENCE: "tiltyard",
    });
    await own.call("putGrant", { id: [], principal: "oidc:ada", role: "reader" });
    const headers = { authorization: `Bearer ${await flaky.token()}` };
    vi.useFakeTimers({ toFake: ["performance"] });
    try {
      expect(await statusWith(own, headers)).toBe(503);
      [flaky.available, flaky.keysAvailable] = [true, false];
      vi.advanceTimersByTime(1_000);
      expect(await statusWith(own, headers)).toBe(503);
      flaky.keysAvailable = true;
      vi.advanceTimersByTime(1_000);
      expect(await statusWith(own, headers)).toBe(200);
    } finally {
      vi.useRealTimers();
      flaky.stop();
      await own.stop();
    }
  });

  test.each(["discovery document", "keys"])(
    "does not multiply fetches of the issuer's %s while they fail",
    async (what) => {
      const failing = new Issuer();
      await failing.start();
      const own = await startTestCatalog(failing.settings);
      [failing.available, failing.keysAvailable] = [what === "keys", false];
      const send = async () =>
        statusWith(own, { authorization: `Bearer ${await failing.token({ jti: randomUUID() })}` });
      vi.useFakeTimers({ toFake: ["performance"] });
      try {
        expect(await Promise.all(Array.from({ length: 20 }, send))).toEqual(Array(20).fill(503));
        for (let index = 0; index < 10; index += 1) expect(await send()).toBe(503);
        expect(failing.requests).toBe(what === "keys" ? 2 : 1);
        failing.keysAvailable = true;
        failing.available = true;
        vi.advanceTimersByTime(1_000);
        expect(await send()).toBe(403);
      } finally {
        vi.useRealTimers();
        failing.stop();
        await own.stop();
      }
    },
  );

  test("is checked with the keys that are known while the issuer is unavailable, and forgeries are refused as ever", async () => {
    const away = new Issuer();
    await away.start();
    const own = await startTestCatalog({
      TILTYARD_AUTH: "oidc",
      TILTYARD_OIDC_ISSUER: away.url,
      TILTYARD_OIDC_AUDIENCE: "tiltyard",
    });
    await own.call("putGrant", { id: [], principal: "oidc:ada", role: "reader" });
    const bearerOf = async (token: string) => statusWith(own, { authorization: `Bearer ${token}` });
    const [first, second] = [await away.token(), await away.token({ jti: "another" })];
    expect(await bearerOf(first)).toBe(200);
    away.stop();
    expect(await bearerOf(second)).toBe(200);
    expect(await bearerOf(`${second.slice(0, -10)}AAAAAAAAAA`)).toBe(401);
    await own.stop();
  });

  test.each(["not JSON", "[]", "{}", '{"keys": 5}', '{"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "first"}]}'])(
    "is never accepted while the issuer answers %s for its keys",
    async (answer) => {
      const broken = createServer((_, response) => response.end(answer)).listen(0, "127.0.0.1");
      await once(broken, "listening");
      const url = `http://127.0.0.1:${(broken.address() as AddressInfo).port}`;
      const own = await startTestCatalog({
        TILTYARD_AUTH: "oidc",
        TILTYARD_OIDC_ISSUER: issuer.url,
        TILTYARD_OIDC_AUDIENCE: "tiltyard",
        TILTYARD_OIDC_JWKS_URL: url,
      });
      await own.call("putGrant", { id: [], principal: "oidc:ada", role: "reader" });
      expect([401, 503]).toContain(await statusWith(own, { authorization: `Bearer ${await issuer.token()}` }));
      broken.close();
      await own.stop();
    },
  );

  test("is issued elsewhere, so the token endpoint does not exist", async () => {
    expect((await catalog.fetch("/oauth/token", { method: "POST" })).status).toBe(404);
  });
});

describe("development authentication", () => {
  const catalog = useCatalog();

  const requestToken = (body: Record<string, string>, headers: Record<string, string> = {}) =>
    catalog.fetch("/oauth/token", { method: "POST", body: new URLSearchParams(body), headers });

  test("issues a token for an API key by the client-credentials grant", async () => {
    const key = await catalog.keyFor("ada", { $: "reader" });
    const response = await requestToken({ grant_type: "client_credentials", client_secret: key });
    expect(response.headers.get("cache-control")).toBe("no-store");
    const token = (await response.json()) as { access_token: string; token_type: string; expires_in: number };
    expect(token).toMatchObject({ token_type: "Bearer", expires_in: 3600 });
    expect(await statusWith(catalog, { authorization: `Bearer ${token.access_token}` })).toBe(200);
    expect(await statusWith(catalog, { authorization: `bearer ${token.access_token}` })).toBe(200);
  });

  test("accepts the client's secret by Basic authentication", async () => {
    const basic = Buffer.from(`ada:${encodeURIComponent(catalog.adminKey)}`).toString("base64");
    const response = await requestToken({ grant_type: "client_credentials" }, { authorization: `Basic ${basic}` });
    expect(response.status).toBe(200);
  });

  test("refuses other grants and wrong secrets as OAuth clients expect it", async () => {
    const wrongGrant = await requestToken({ grant_type: "password" });
    expect([wrongGrant.status, await wrongGrant.json()]).toMatchObject([400, { error: "unsupported_grant_type" }]);
    const wrongSecret = await requestToken({ grant_type: "client_credentials", client_secret: "wrong" });
    expect([wrongSecret.status, await wrongSecret.json()]).toMatchObject([401, { error: "invalid_client", code: 16 }]);
  });

  test("keeps a key in the data directory that only its owner can read", async () => {
    const { statSync } = await import("node:fs");
    const file = `${catalog.dataDir}/development.key`;
    expect(statSync(file).mode & 0o077).toBe(0);
    expect(await statusWith(catalog, { "x-api-key": readText(file) })).toBe(200);
  });
});

describe("the credential that counts", () => {
  const catalog = useCatalog();

  test("is the Authorization header before x-api-key, and a header before the body", async () => {
    const good = catalog.adminKey;
    expect(await statusWith(catalog, { authorization: "Bearer wrong", "x-api-key": good })).toBe(401);
    expect(await statusWith(catalog, { authorization: `Basic ${good}`, "x-api-key": good })).toBe(401);
    const inBody = JSON.stringify({ identity: { api_key: good } });
    expect(await statusWith(catalog, { "x-api-key": "wrong" }, inBody)).toBe(401);
    expect(await statusWith(catalog, { "x-api-key": good }, JSON.stringify({ identity: { api_key: "wrong" } }))).toBe(
      200,
    );
  });

  test("is the body's identity without one in the headers, with its token before its key", async () => {
    const good = catalog.adminKey;
    expect(await statusWith(catalog, {}, JSON.stringify({ identity: { api_key: good } }))).toBe(200);
    expect(await statusWith(catalog, {}, JSON.stringify({ identity: { api_key: "wrong" } }))).toBe(401);
    const both = { identity: { auth_token: "wrong", api_key: good } };
    expect(await statusWith(catalog, {}, JSON.stringify(both))).toBe(401);
    const form = new URLSearchParams({ grant_type: "client_credentials", client_secret: good });
    const answer = await catalog.fetch("/oauth/token", { method: "POST", body: form, headers: {} });
    const { access_token } = (await answer.json()) as { access_token: string };
    expect(await statusWith(catalog, {}, JSON.stringify({ identity: { auth_token: access_token } }))).toBe(200);
  });

  test("is missing from a body that cannot be read", async () => {
    expect(await statusWith(catalog, {}, "{")).toBe(401);
  });

  test("is stored as a hash only", async () => {
    const key = await catalog.keyFor("ada", {});
    const stored = await readWhole(catalog.database);
    expect(stored).toContain("ada");
    for (const secret of [key, catalog.adminKey]) expect(stored).not.toContain(secret);
  });
});
