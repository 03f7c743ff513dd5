import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { auditVerdict, Bom, licenceProblems } from "./dependencies/verdicts.ts";

const bomOf = (licenses: unknown, name = "package") =>
  Bom.parse({ components: [{ name, version: "1.0.0", ...(licenses !== undefined && { licenses }) }] });

describe("the licence of a dependency", () => {
  test.each([
    [[{ license: { id: "MIT" } }]],
    [[{ expression: "(MIT OR GPL-3.0-only)" }]],
    [[{ expression: "(BSD-3-Clause AND Apache-2.0)" }]],
  ])("is allowed: %j", (licenses) => {
    expect(licenceProblems(bomOf(licenses))).toEqual([]);
  });

  test.each([
    [undefined],
    [[]],
    [[{ license: { id: "GPL-3.0-only" } }]],
    [[{ license: { name: "SEE LICENSE IN terms.txt" } }]],
    [[{ expression: "(MIT AND AGPL-3.0-only)" }]],
    [[{ license: { id: "MIT" } }, { license: { id: "BUSL-1.1" } }]],
  ])("is a problem: %j", (licenses) => {
    expect(licenceProblems(bomOf(licenses))).toEqual([expect.stringContaining("package 1.0.0: ")]);
  });

  test("is the one of its licence file where we read that", () => {
    expect(licenceProblems(bomOf(undefined, "@logdna/tail-file"))).toEqual([]);
  });
});

describe("an audit", () => {
  const finding = (severity: string) => ({ [severity]: { name: "a", severity, range: "<2" } });

  test("finds what is of high severity, and of critical", () => {
    const vulnerabilities = { ...finding("low"), ...finding("moderate"), ...finding("high"), ...finding("critical") };
    expect(auditVerdict({ vulnerabilities })).toEqual({ kind: "audited", problems: ["a <2: high", "a <2: critical"] });
    expect(auditVerdict({ vulnerabilities: {} })).toEqual({ kind: "audited", problems: [] });
  });

  test("passes when the registry refuses it", () => {
    const printed = { message: "405 Method Not Allowed - POST", statusCode: 405, error: { summary: "" } };
    expect(auditVerdict(printed)).toEqual({ kind: "refused", why: "405 Method Not Allowed - POST" });
  });

  test.each([{ message: "503", statusCode: 503 }, { message: "ENOTFOUND" }, {}, null])(
    "has no verdict when it fails: %j",
    (printed) => {
      expect(() => auditVerdict(printed)).toThrow("the audit failed");
    },
  );
});

test("runs no install script of a published package's dependency except for native code and Pulumi's plugins", () => {
  const lock: { packages: Record<string, { dev?: boolean; hasInstallScript?: boolean }> } = JSON.parse(
    readFileSync("package-lock.json", "utf8"),
  );
  const withScript = Object.entries(lock.packages).filter(([, { dev, hasInstallScript }]) => hasInstallScript && !dev);
  expect(withScript.map(([path]) => path.replace("node_modules/", "")).toSorted()).toEqual([
    "@pulumi/docker-build",
    "@pulumi/kubernetes",
    "better-sqlite3",
    "protobufjs",
  ]);
});
