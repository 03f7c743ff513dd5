import { ownValue } from "@tiltyard/protocol";
import { gkeOperatorPairs, kubernetesSupport, versions } from "../versions.ts";
import type { Reading } from "./settings.ts";

/** The number of days before the end of support at which warnings begin. */
const noticeDays = 92;

type Cloud = Extract<
  Reading<"kubernetesVersion" | "releaseChannel" | "supportType">,
  { readonly variant: "gke" | "eks" }
>;

/** The advice about the end of support of a stack's Kubernetes version. */
interface Notice {
  readonly message: string;
  /** Reports whether the stack is rejected. */
  readonly isRefusal: boolean;
}

/**
 * Compares the Kubernetes version of a stack with the end of its support.
 *
 * @param today The current date.
 * @returns A notice from three months before the end of support; undefined for unknown versions.
 */
export function supportNotice(settings: Cloud, today: Date): Notice | undefined {
  const { variant } = settings;
  const version = settings.kubernetesVersion ?? (variant === "eks" ? versions.kubernetes : undefined);
  const known = version === undefined ? undefined : ownValue(kubernetesSupport[variant], version);
  if (version === undefined || known === undefined) return undefined;
  const { isExtended, extend } = extensionOf(settings);
  const end = isExtended ? known.extended : known.standard;
  const daysLeft = (Date.parse(end) - today.getTime()) / 86_400_000;
  if (daysLeft > noticeDays) return undefined;
  const hasEnded = daysLeft < 0;
  const support = `${isExtended ? "extended" : "standard"} support of Kubernetes ${version} on ${variant}`;
  const isSupportable = Date.parse(known.extended) > today.getTime();
  const extension = !isExtended && isSupportable ? `, or ${extend} to have it until ${known.extended}` : "";
  const isPair = variant === "gke" && Object.hasOwn(gkeOperatorPairs, version);
  return {
    message: `kubernetesVersion: ${support} ${hasEnded ? "ended" : "ends"} on ${end}. Set a later kubernetesVersion${extension}`,
    // GKE itself decides on versions with a pinned operator add-on, as long as it supports them at all.
    isRefusal: hasEnded && !(isPair && isSupportable),
  };
}

function extensionOf(settings: Cloud): { readonly isExtended: boolean; readonly extend: string } {
  if (settings.variant === "eks")
    return { isExtended: settings.supportType === "EXTENDED", extend: "supportType: EXTENDED" };
  return { isExtended: settings.releaseChannel === "EXTENDED", extend: "releaseChannel: EXTENDED" };
}
