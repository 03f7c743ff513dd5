import { z } from "zod";

/** Licences that ask for no more than to be named. */
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

/** Packages whose `package.json` names no licence of SPDX, with the one that their licence file is. */
const readLicences: Readonly<Record<string, string>> = { "@logdna/tail-file": "MIT" };

/** What of a CycloneDX document is read: `npm sbom` writes it of the installed packages. */
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

/** @returns A line for each component without a licence that is allowed. */
export function licenceProblems({ components }: z.infer<typeof Bom>): readonly string[] {
  return components.flatMap(({ name, version, licenses }) => {
    const found = licenses.length > 0 ? licenses : [readLicences[name] ?? "none"];
    return found.every(isAllowed) ? [] : [`${name} ${version}: ${found.join(", ")} is no licence that is allowed`];
  });
}

/** Reads the expressions that packages have: licences joined by AND or by OR. */
function isAllowed(expression: string): boolean {
  const text = expression.replaceAll(/[()]/g, "");
  if (text.includes(" AND ")) return !text.includes(" OR ") && text.split(" AND ").every(isAllowed);
  return text.split(" OR ").some((licence) => allowedLicences.has(licence));
}

const Finding = z.object({ name: z.string(), severity: z.string(), range: z.string() });
const AuditReport = z.object({ vulnerabilities: z.record(z.string(), Finding) });
const AuditRefused = z.object({ statusCode: z.int().min(400).max(499), message: z.string() });

/** What an audit came to. */
export type AuditVerdict =
  | { readonly kind: "audited"; readonly problems: readonly string[] }
  /** The registry takes no audits: nothing is known. */
  | { readonly kind: "refused"; readonly why: string };

/**
 * Reads what `npm audit --json` printed.
 *
 * @throws Error when that is no verdict: the registry could not be reached, or failed.
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
  throw new Error(`the audit could not be made: ${JSON.stringify(printed)}`);
}
