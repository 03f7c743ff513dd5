import { z } from "zod";

/** The licences that require no more than attribution. */
const allowedLicences = new Set([
  "0BSD",
  "Apache-2.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "BlueOak-1.0.0",
  "CC-BY-3.0",
  "CC0-1.0",
  "ISC",
  "MIT",
  "Python-2.0",
]);

/** The packages whose `package.json` contains no SPDX licence, with the licence of their licence file. */
const readLicences: Readonly<Record<string, string>> = { "@logdna/tail-file": "MIT" };

/** The parsed fields of the CycloneDX document of the installed packages, which `npm sbom` writes. */
export const Bom = z.object({
  components: z.array(
    z.object({
      name: z.string(),
      version: z.string(),
      licenses: z
        .array(
          z.union([
            z.object({ expression: z.string() }).transform(({ expression }) => expression),
            z
              .object({ license: z.object({ id: z.string().optional(), name: z.string().optional() }) })
              .transform(({ license }) => license.id ?? license.name ?? ""),
          ]),
        )
        .default([]),
    }),
  ),
});

/** Returns a line for each component without an allowed licence. */
export function licenceProblems({ components }: z.infer<typeof Bom>): readonly string[] {
  return components.flatMap(({ name, version, licenses }) => {
    const found = licenses.length > 0 ? licenses : [readLicences[name] ?? "none"];
    return found.every(isAllowed) ? [] : [`${name} ${version}: ${found.join(", ")} is no licence that is allowed`];
  });
}

/** Evaluates a licence expression: licences joined by AND or by OR. */
function isAllowed(expression: string): boolean {
  const text = expression.replaceAll(/[()]/g, "");
  if (text.includes(" AND ")) return !text.includes(" OR ") && text.split(" AND ").every(isAllowed);
  return text.split(" OR ").some((licence) => allowedLicences.has(licence));
}

const Finding = z.object({ name: z.string(), severity: z.string(), range: z.string() });
const AuditReport = z.object({ vulnerabilities: z.record(z.string(), Finding) });
const AuditRefused = z.object({ statusCode: z.int().min(400).max(499), message: z.string() });

/** The result of an audit. */
export type AuditVerdict =
  | { readonly kind: "audited"; readonly problems: readonly string[] }
  /** The registry does not support audits, so nothing is known. */
  | { readonly kind: "refused"; readonly why: string };

/**
 * Parses the output of `npm audit --json`.
 *
 * @throws Error if the output contains no result because the registry failed or could not be reached.
 */
export function auditVerdict(printed: unknown): AuditVerdict {
  const report = AuditReport.safeParse(printed);
  if (report.success) {
    const grave = Object.values(report.data.vulnerabilities).filter(({ severity }) =>
      ["high", "critical"].includes(severity),
    );
    return { kind: "audited", problems: grave.map(({ name, severity, range }) => `${name} ${range}: ${severity}`) };
  }
  const refused = AuditRefused.safeParse(printed);
  if (refused.success) return { kind: "refused", why: refused.data.message };
  throw new Error(`the audit failed: ${JSON.stringify(printed)}`);
}
