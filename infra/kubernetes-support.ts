import type { Reading } from "./settings.ts";
import { gkeOperatorPairs, kubernetesSupport, versions } from "./versions.ts";

/** Warnings begin so many days before the end of support. */
const noticeDays = 92;

type Cloud = Extract<
  Reading<"kubernetesVersion" | "releaseChannel" | "supportType">,
  { readonly variant: "gke" | "eks" }
>;

/** What to do about the end of support of the Kubernetes version that a stack asks for. */
interface Notice {
  readonly message: string;
  /** Whether the stack is refused for it. */
  readonly isRefusal: boolean;
}

/**
 * Compares the Kubernetes version of a stack with the end of its support.
 *
 * @param today The date that counts.
 * @returns A notice in the last three months of support and afterwards; undefined for versions that are not known here.
 */
export function supportNotice(settings: Cloud, today: Date): Notice | undefined {
  const { variant } = settings;
  const version = settings.kubernetesVersion ?? (variant === "eks" ? versions.kubernetes : undefined);
  const known = version === undefined ? undefined : kubernetesSupport[variant][version];
  if (version === undefined || known === undefined) return undefined;
  const { isExtended, extend } = extensionOf(settings);
  const end = isExtended ? known.extended : known.standard;
  const daysLeft = (Date.parse(end) - today.getTime()) / 86_400_000;
  if (daysLeft > noticeDays) return undefined;
  const hasEnded = daysLeft < 0;
  const support = `${isExtended ? "extended" : "standard"} support of Kubernetes ${version} on ${variant}`;
  const advice = `Set a later kubernetesVersion${isExtended ? "" : `, or ${extend} to have it until ${known.extended}`}`;
  const isPair = variant === "gke" && version in gkeOperatorPairs;
  return {
    message: `kubernetesVersion: ${support} ${hasEnded ? "ended" : "ends"} on ${end}. ${advice}`,
    // Whether such a cluster can still be created is GKE's decision: requirements.md 9 names these versions.
    isRefusal: hasEnded && !isPair,
  };
}

function extensionOf(settings: Cloud): { readonly isExtended: boolean; readonly extend: string } {
  if (settings.variant === "eks")
    return { isExtended: settings.supportType === "EXTENDED", extend: "supportType: EXTENDED" };
  return { isExtended: settings.releaseChannel === "EXTENDED", extend: "releaseChannel: EXTENDED" };
}
