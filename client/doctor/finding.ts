/** The outcome of one check. A warning concerns a part that some users do not need. */
export interface Finding {
  readonly check: string;
  readonly result: "ok" | "warning" | "failed" | "skipped";
  readonly detail: string;
  /** The recommended action. */
  readonly advice?: string;
}

export type Outcome = Omit<Finding, "check">;
export type Check<Tools> = readonly [name: string, run: (tools: Tools) => Promise<Outcome>];

export const ok = (detail: string): Outcome => ({ result: "ok", detail });
export const failed = (detail: string, advice: string): Outcome => ({ result: "failed", detail, advice });
export const warning = (detail: string, advice: string): Outcome => ({ result: "warning", detail, advice });
export const skipped = (detail: string, advice?: string): Outcome => ({
  result: "skipped",
  detail,
  ...(advice !== undefined && { advice }),
});

/** Runs checks concurrently. Each covers one aspect, so that a fault fails only its own check. */
export function runChecks<Tools>(
  checks: readonly Check<Tools>[],
  tools: Tools,
  onError: (error: unknown) => Outcome,
): Promise<readonly Finding[]> {
  return Promise.all(
    checks.map(async ([check, run]) => {
      try {
        return { check, ...(await run(tools)) };
      } catch (error) {
        return { check, ...onError(error) };
      }
    }),
  );
}
