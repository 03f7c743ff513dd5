import { type AddressInfo, createServer } from "node:net";
import { KubeConfig } from "@kubernetes/client-node";
import { onTestFinished, vi } from "vitest";

const timeoutMs = 30_000;

/** Returns a kubeconfig of an API server that accepts connections and never answers. Timeouts of 30 s pass at once. */
export async function kubeConfigOfSilence(): Promise<KubeConfig> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  const spy = vi.spyOn(AbortSignal, "timeout").mockImplementation((ms) => timeout(ms === timeoutMs ? 1 : ms));
  onTestFinished(() => {
    spy.mockRestore();
    server.close();
  });
  return kubeConfigAt((server.address() as AddressInfo).port);
}

/** Returns a kubeconfig of an API server on this port of the machine. */
export function kubeConfigAt(port: number): KubeConfig {
  const config = new KubeConfig();
  const cluster = { name: "local", server: `http://127.0.0.1:${port}`, skipTLSVerify: true };
  config.loadFromClusterAndUser(cluster, { name: "me" });
  return config;
}
