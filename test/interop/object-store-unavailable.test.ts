import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { CatalogError } from "@tiltyard/protocol";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { unusedPort } from "../../client/unused-port.ts";
import { close, listen } from "../../service/server/server.ts";
import { openFileStore } from "../../service/storage/file.ts";
import { openGcsStore } from "../../service/storage/gcs.ts";
import type { ObjectStore } from "../../service/storage/object-store.ts";
import { openS3Store } from "../../service/storage/s3.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const bucket = "tiltyard-test";
afterEach(() => {
  vi.unstubAllEnvs();
});

describe("an object store that cannot be used", () => {
  /** Returns every use of a store, each with a key in the folder. */
  const uses = (store: ObjectStore, folder: string) => ({
    find: () => store.find(`${folder}/key`),
    persist: () => store.persist(`${folder}/key`),
    copy: () => store.copy(`${folder}/from`, `${folder}/to`),
    delete: () => store.delete(`${folder}/key`),
    list: async () => {
      for await (const _ of store.list(folder));
    },
    deleteFolder: () => store.deleteFolder(folder),
  });

  async function expectUnavailable(work: () => Promise<unknown>, unspoken: string): Promise<void> {
    const error = await work().catch((caught: unknown) => caught);
    expect(error).toMatchObject({ kind: "ServiceUnavailable" });
    expect(error).toBeInstanceOf(CatalogError);
    expect(String(error)).not.toContain(unspoken);
  }

  test.each([
    ["S3", "AWS_ENDPOINT_URL", () => openS3Store(bucket, { forcePathStyle: true })],
    ["Google Cloud Storage", "STORAGE_EMULATOR_HOST", () => openGcsStore(bucket)],
  ])("is reported as unavailable, without its address: %s", async (_, variable, open) => {
    const host = `127.0.0.1:${await unusedPort()}`;
    vi.stubEnv(variable, `http://${host}`);
    vi.stubEnv("AWS_REGION", "us-east-1");
    vi.stubEnv("AWS_ACCESS_KEY_ID", "test");
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", "test");
    const store = open();
    // The uses run concurrently, because the libraries of the clouds retry for some seconds.
    await Promise.all(Object.values(uses(store, "folder")).map((use) => expectUnavailable(use, host)));
  });

  test.each([
    ["S3", "AWS_ENDPOINT_URL", () => openS3Store(bucket, { forcePathStyle: true })],
    ["Google Cloud Storage", "STORAGE_EMULATOR_HOST", () => openGcsStore(bucket)],
  ])("is reported as unavailable when it truncates an object: %s", async (_, variable, open) => {
    const server = createServer(({ url = "" }, response) => {
      const isMetadata = url.includes("/o/") && !url.includes("alt=media");
      if (isMetadata) return response.end(JSON.stringify({ generation: "1", size: "100", updated: new Date(0) }));
      response.writeHead(200, { "content-length": 100, etag: '"1"' });
      return response.write("x".repeat(50), () => response.destroy());
    });
    const url = await listen(server, { host: "127.0.0.1", port: 0 });
    onTestFinished(() => close(server));
    vi.stubEnv(variable, url);
    vi.stubEnv("AWS_REGION", "us-east-1");
    vi.stubEnv("AWS_ACCESS_KEY_ID", "test");
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", "test");
    const store = open();
    await Promise.all([store.read, store.persist].map((use) => expectUnavailable(() => use("folder/key"), url)));
  });

  test.each([1, 100])("repeats requests that conflict %d times, but not forever: S3", async (conflicts) => {
    let left = 0;
    const server = createServer(({ method }, response) => {
      if (method === "GET" || method === "HEAD")
        return response.writeHead(isPresent ? 200 : 404, { etag: '"1"' }).end();
      if (left-- <= 0) return response.writeHead(200, { etag: '"2"' }).end();
      return response.writeHead(409).end("<Error><Code>ConditionalRequestConflict</Code></Error>");
    });
    let isPresent = false;
    const url = await listen(server, { host: "127.0.0.1", port: 0 });
    onTestFinished(() => close(server));
    vi.stubEnv("AWS_ENDPOINT_URL", url);
    vi.stubEnv("AWS_REGION", "us-east-1");
    vi.stubEnv("AWS_ACCESS_KEY_ID", "test");
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", "test");
    const store = openS3Store(bucket, { forcePathStyle: true });
    const expectOutcome = async (work: () => Promise<unknown>, outcome: unknown) => {
      left = conflicts;
      if (conflicts === 1) expect(await work()).toEqual(outcome);
      else await expectUnavailable(work, url);
    };
    await expectOutcome(() => store.create("key", "content"), true);
    isPresent = true;
    await expectOutcome(() => store.replace("key", "content", '"1"'), true);
    const only = { identity: '"1"', modifiedAtMillis: 0, sizeBytes: 0 };
    await expectOutcome(() => store.delete("key", only), undefined);
    expect(left).toBeLessThan(conflicts);
  });

  test("is asked again after a folder was deleted: Google Cloud Storage", async () => {
    const items = ["a", "b", "c"].map((key) => ({ name: `folder/${key}`, size: "1", updated: new Date(0) }));
    let failures = 0;
    const server = createServer(({ method, url = "" }, response) => {
      if (method === "DELETE") return response.writeHead(204).end();
      const isListing = !url.includes("/o/");
      if (!isListing && failures++ === 0) return response.writeHead(503).end();
      response.setHeader("content-type", "application/json");
      return response.end(JSON.stringify(isListing ? { items } : items[0]));
    });
    const url = await listen(server, { host: "127.0.0.1", port: 0 });
    onTestFinished(() => close(server));
    vi.stubEnv("STORAGE_EMULATOR_HOST", url);
    const store = openGcsStore(bucket);
    await store.deleteFolder("folder");
    expect(await store.find("folder/a")).toMatchObject({ sizeBytes: 1 });
  });

  test("is reported as unavailable: local files", async () => {
    const folder = temporaryFolder("tiltyard files ").slice(1);
    writeFileSync(`/${folder}/from`, "content");
    // A copy into a folder that is a file fails for a reason other than a missing source.
    await expectUnavailable(() => openFileStore().copy(`${folder}/from`, `${folder}/from/to`), "ENOTDIR");
  });
});
