import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { LiveObjects } from "../../infra/components/cluster-provider.ts";
import { waitUntilAuthorized } from "../../infra/components/eks/authorization.ts";
import { kubeConfigAt, kubeConfigOfSilence } from "../support/silent-api-server.ts";

test("the checks of a stack wait for a silent API server no longer than 30 seconds", async () => {
  const config = await kubeConfigOfSilence();
  await expect(new LiveObjects(config).find("v1", "Namespace", "lancedb")).rejects.toThrow("no answer within 30 s");
});

test("the wait for the rights of an administrator ends although the API server is silent", async () => {
  const config = await kubeConfigOfSilence();
  const wait = waitUntilAuthorized(config.exportConfig(), { pauseMs: 1, timeoutMs: 1 });
  await expect(wait).rejects.toThrow("The API server does not answer: no answer within 30 s");
});

test("the checks of a stack outlive two lost connections, and name the cause of a third one", async () => {
  let lost = 2;
  const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "lancedb" } };
  const server = createServer(({ socket, url }, response) => {
    if (url?.includes("lancedb") && lost-- > 0) return socket.destroy();
    response.setHeader("content-type", "application/json");
    const resource = { name: "namespaces", namespaced: false, kind: "Namespace", verbs: ["get"] };
    response.end(
      JSON.stringify(url?.includes("lancedb") ? namespace : { kind: "APIResourceList", resources: [resource] }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const read = () =>
    new LiveObjects(kubeConfigAt((server.address() as AddressInfo).port)).find("v1", "Namespace", "lancedb");
  expect(await read()).toMatchObject(namespace);
  lost = 3;
  await expect(read()).rejects.toThrow("The API server cannot be reached: other side closed");
});
