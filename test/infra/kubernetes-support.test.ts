import { describe, expect, test } from "vitest";
import { parseStackConfig } from "../../infra/config.ts";
import { warningsOf } from "../../infra/read-config.ts";
import { kubernetesSupport, versions } from "../../infra/versions.ts";
import { deployed, type Settings, settingsOf } from "../support/stack.ts";

const parse = (variant: string, settings: Settings, day: string) =>
  parseStackConfig(settingsOf(variant, settings), new Date(day));
const closed = { network: { authorizedNetworks: ["203.0.113.0/24"] } };
const warnings = (variant: string, settings: Settings, day: string) =>
  warningsOf(parse(variant, { ...closed, ...settings }, day), new Date(day));
const extended = { eks: { supportType: "EXTENDED" }, gke: { releaseChannel: "EXTENDED" } } as const;

describe.each(["eks", "gke"] as const)("a Kubernetes version on %s", (variant) => {
  const settings = { kubernetesVersion: "1.34" };
  const end = kubernetesSupport[variant]["1.34"]?.standard ?? "";
  const daysBefore = (days: number) => new Date(Date.parse(end) - days * 86_400_000).toISOString();

  test("is used without a warning until three months before its support ends", () => {
    expect(warnings(variant, settings, daysBefore(93))).toEqual([]);
    expect(warnings(variant, settings, daysBefore(91))).toEqual([
      expect.stringContaining(`standard support of Kubernetes 1.34 on ${variant} ends on ${end}`),
    ]);
  });

  test("is rejected after its support has ended, with the setting that extends it", () => {
    expect(parse(variant, settings, end)).toMatchObject(settings);
    const [[name, value] = []] = Object.entries(extended[variant]);
    expect(() => parse(variant, settings, daysBefore(-1))).toThrow(
      `kubernetesVersion: standard support of Kubernetes 1.34 on ${variant} ended on ${end}. Set a later kubernetesVersion, or ${name}: ${value}`,
    );
  });

  test("is used until the end of extended support where that is asked for", () => {
    const both = { ...settings, ...extended[variant] };
    expect(warnings(variant, both, daysBefore(-1))).toEqual([]);
    const last = kubernetesSupport[variant]["1.34"]?.extended ?? "";
    expect(() => parse(variant, both, new Date(Date.parse(last) + 86_400_000).toISOString())).toThrow(
      `extended support of Kubernetes 1.34 on ${variant} ended on ${last}`,
    );
  });

  test("is not judged when it is later than those that are known here", () => {
    expect(warnings(variant, { kubernetesVersion: "1.99" }, "2040-01-01")).toEqual([]);
  });
});

test("the default version of EKS is refused when its support has ended", () => {
  expect(() => parse("eks", {}, "2040-01-01")).toThrow(`Kubernetes ${versions.kubernetes} on eks ended`);
});

test.each([
  ["1.30", "1.1"],
  ["1.31", "1.2"],
])(
  "GKE's add-on on Kubernetes %s with operator %s stays valid until its extended support ends, with a warning",
  (kubernetes, its) => {
    const settings = { kubernetesVersion: kubernetes, operator: { source: "gke-addon", version: its } };
    expect(warnings("gke", settings, "2026-06-15")).toEqual([
      expect.stringContaining(`Kubernetes ${kubernetes} on gke ended`),
    ]);
  },
);

test.each([undefined, "1.35"])("GKE's add-on needs no version on Kubernetes %s", async (kubernetesVersion) => {
  const { one, outputs } = await deployed("gke", { kubernetesVersion, operator: { source: "gke-addon" } });
  const { rayOperatorConfigs } = one("gcp:container/cluster:Cluster").inputs.addonsConfig;
  expect(rayOperatorConfigs).toMatchObject([{ enabled: true }]);
  expect(outputs.operatorVersion).toBeUndefined();
});

describe("the Kubernetes API", () => {
  const openings = [{}, { authorizedNetworks: ["203.0.113.0/24", "0.0.0.0/0"] }];

  test.each(["gke", "eks"].flatMap((variant) => openings.map((network) => ({ variant, network }))))(
    "causes a warning on $variant when every address reaches it: $network",
    ({ variant, network }) => {
      expect(warnings(variant, { network }, "2026-06-15")).toEqual([
        expect.stringMatching(/^network.authorizedNetworks: the Kubernetes API accepts connections from every address/),
      ]);
    },
  );

  test("is not warned about without a public address, and on a cluster that is not the stack's", () => {
    expect(warnings("gke", { network: { publicEndpoint: false } }, "2026-06-15")).toEqual([]);
    expect(warningsOf(parse("existing", {}, "2026-06-15"), new Date()).join()).not.toContain("network");
  });
});

test("the Kubernetes API accepts every address again without authorizedNetworks, and after a private endpoint", async () => {
  // The providers of both clouds keep the former networks where a stack names none.
  const gke = (await deployed("gke")).one("gcp:container/cluster:Cluster").inputs;
  expect(gke.masterAuthorizedNetworksConfig).toEqual({ cidrBlocks: [{ cidrBlock: "0.0.0.0/0" }] });
  expect((await deployed("eks")).one("eks:index:Cluster").inputs.publicAccessCidrs).toEqual(["0.0.0.0/0"]);
  const isPrivate = (await deployed("gke", { network: { publicEndpoint: false } })).one(
    "gcp:container/cluster:Cluster",
  );
  expect(isPrivate.inputs.masterAuthorizedNetworksConfig).toEqual({ cidrBlocks: [] });
});

test("the release channel and the type of support are settings", async () => {
  const gke = (await deployed("gke", extended.gke)).one("gcp:container/cluster:Cluster").inputs;
  expect(gke.releaseChannel).toEqual({ channel: "EXTENDED" });
  const eks = (await deployed("eks", extended.eks)).one("eks:index:Cluster").inputs;
  expect(eks.upgradePolicy).toEqual({ supportType: "EXTENDED" });
});
