import { ownValue } from "@tiltyard/protocol";
import { z } from "zod";

const units: Readonly<Record<string, number>> = {
  "": 1,
  ...{ m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12 },
  ...{ Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40 },
};
const pattern = /^(\d+(?:\.\d+)?)([a-zA-Z]*)$/;

/** Returns the number of a Kubernetes quantity such as `500m` or `2Gi`; NaN if it is invalid. */
export function amountOf(quantity: string | number): number {
  const [, amount, unit = ""] = pattern.exec(String(quantity)) ?? [];
  return Number(amount) * (ownValue(units, unit) ?? Number.NaN);
}

/** An amount of memory: a Kubernetes quantity such as `8Gi`, or a number of bytes. */
export const Memory = z
  .union([z.string(), z.number()], "must be a quantity such as 8Gi, or a number of bytes")
  .transform((given, context) => {
    const bytes = amountOf(given);
    if (bytes >= memoryBytesMin) return typeof given === "number" ? String(given) : given;
    const problem = Number.isNaN(bytes)
      ? "must be a quantity such as 8Gi"
      : "is too little for Ray, which needs at least 1Gi";
    context.addIssue({ code: "custom", message: `${problem}, or a number of bytes, not ${given}` });
    return z.NEVER;
  });

const memoryBytesMin = 2 ** 30;

/** An amount of disk: a Kubernetes quantity such as `50Gi`. The minimum excludes a forgotten unit. */
export const Storage = z
  .string("must be a quantity such as 50Gi")
  .refine((given) => amountOf(given) >= 2 ** 30, "must be a quantity of at least 1Gi, such as 50Gi");
