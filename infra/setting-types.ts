/** Kinds of values that settings have. */
import { amountOf } from "@tiltyard/protocol";
import { z } from "zod";

export const dnsLabel = z
  .string()
  .regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, "must be lower-case letters, digits and dashes, 63 at most");

export const labelDomain = z
  .string()
  .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?\.[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, "must be a domain, e.g. ray.example.com");

/** YAML reads 1.30 as the number 1.3. */
const versionText = z.string("must be in quotes, or it is read as a number");
export const version = versionText.regex(/^\d+\.\d+(\.\d+)?$/, "must be a version such as 1.6.2");
export const minorVersion = versionText.regex(/^\d+\.\d+$/, "must be a minor version such as 1.35");

/** No version before it has been run for years: what is lower lost its last digit as a number. */
const kubernetesMinorMin = 20;
export const kubernetesVersion = minorVersion.refine(
  (text) => Number(text.split(".")[1]) >= kubernetesMinorMin,
  'must be in quotes, as "1.30" is, or it is read as a number',
);

/** Clouds refuse a range whose address has bits that the mask does not cover. */
export const cidr = z
  .cidrv4("must be a range of addresses such as 10.0.0.0/16")
  .refine(
    (range) => !hasHostBits(range),
    "must begin at its first address, as 10.0.0.0/16 does and 10.0.0.1/16 does not",
  );

function hasHostBits(range: string): boolean {
  const [address = "", length = "32"] = range.split("/");
  const number = address.split(".").reduce((sum, octet) => sum * 256 + Number(octet), 0);
  return number % 2 ** (32 - Number(length)) !== 0;
}

export const quantity = z
  .string()
  .refine((text) => !Number.isNaN(amountOf(text)), "must be a Kubernetes quantity such as 500m or 2Gi");

/** The URI of a bucket, with a folder if one likes, without a slash at its end. */
export function bucketOf(...schemes: readonly ("s3" | "gs" | "file")[]) {
  const message = `must be ${schemes.map((scheme) => (scheme === "file" ? "file:///..." : `${scheme}://...`)).join(" or ")}`;
  return z
    .string(message)
    .regex(/^(s3|gs):\/\/[a-z0-9][-a-z0-9._]+(\/[^\s*?[\]${}]*)?$|^file:\/\/\/\S+$/, message)
    .refine((uri) => schemes.some((scheme) => uri.startsWith(`${scheme}:`)), message)
    .transform((uri) => uri.replace(/\/+$/, ""));
}
