/** The types of the values of settings. */
import { amountOf } from "@tiltyard/platform";
import { closest } from "@tiltyard/protocol";
import { z } from "zod";

/** Returns the message about unknown fields of a structure, each with the known field that it most likely means. */
export function hasNoField(unknown: readonly string[], known: readonly string[]): string {
  const fields = unknown.map((field) => {
    const meant = closest(field, known);
    return meant === undefined ? field : `${field} (did you mean ${meant}?)`;
  });
  return `has no field ${fields.join(", ")}`;
}

export const filled = z.string().min(1, "must not be empty");

export const dnsLabel = z
  .string()
  .regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, "must be at most 63 lower-case letters, digits and dashes");

/**
 * The namespaces of Kubernetes and of the clouds, which a stack must not label. Kubernetes reserves the prefix `kube-`.
 */
const systemNamespaces = /^(default|kube-.*|gke-.*|gmp-.*|amazon-.*|kueue-system)$/;

/** The name of a namespace for objects of the stack. */
export const ownNamespace = dnsLabel.refine(
  (name) => !systemNamespaces.test(name),
  "must not be a namespace of Kubernetes or of the cloud",
);

/** The name of a service account that the stack creates. Kubernetes creates one that is named `default`. */
export const ownServiceAccount = dnsLabel.refine(
  (name) => name !== "default",
  "must not be default, which each namespace has",
);

/** The name of a secret or a volume claim. Kubernetes allows dots in it, which cert-manager's names often contain. */
export const objectName = z
  .string()
  .max(253)
  .regex(
    /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/,
    "must be lower-case letters, digits, dashes and dots",
  );

/** The rule of EKS (`CreateCluster`). */
export const eksClusterName = z
  .string()
  .regex(/^[A-Za-z0-9][\w-]{0,99}$/, "must be at most 100 letters, digits, dashes and underscores");

const domain = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)+$/;
/** The maximum length of a domain in DNS and in Kubernetes. */
const domainMax = 253;
const domainName = (message: string) => z.string().max(domainMax).regex(domain, message);
export const labelDomain = domainName("must be a domain, e.g. ray.example.com");
const hostMessage = "must be the name of a host, e.g. catalog.example.com";
/** The name of a host. Kubernetes refuses an address, whose last part has no letter. */
export const hostName = domainName(hostMessage).refine((name) => /[a-z][^.]*$/.test(name), hostMessage);

/** The grammar of references to images: a host, a path, a tag and a digest. */
const imageGrammar = new RegExp(
  "^([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?(:\\d{1,5})?/)?[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*(/[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*)*" +
    "(:\\w[-\\w.]{0,127})?(@[a-z0-9]+:[0-9a-f]{32,})?$",
);
export const imageName = z
  .string()
  .max(domainMax)
  .regex(imageGrammar, "must be the name of an image, e.g. registry.example.com/catalog:1");

export function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

/**
 * Accepts numbers and booleans as text, because `pulumi config set --path` stores them as such even where text is
 * expected.
 */
function asText<Its extends z.ZodType>(schema: Its) {
  return z.preprocess(
    (given) => (typeof given === "number" || typeof given === "boolean" ? String(given) : given),
    schema,
  );
}

const textMap = z.record(z.string(), asText(z.string()));

/** The rule of Kubernetes for the values of labels and for their keys after the domain. */
const nameOfLabel = /^[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?$/;
const labelForm = "must be at most 63 letters, digits, dashes, dots and underscores";
export const labelName = z.string().regex(nameOfLabel, labelForm);
export const labelValueText = asText(z.union([labelName, z.literal("")], labelForm));
function isPrefix(text: string): boolean {
  return text.length <= domainMax && domain.test(text);
}

/** A label key with or without a domain. */
export const labelKey = z.string().refine((key) => {
  const [name = "", itsDomain, ...more] = key.split("/").toReversed();
  return nameOfLabel.test(name) && more.length === 0 && (itsDomain === undefined || isPrefix(itsDomain));
}, "must be a label such as team or example.com/team");
export const labels = z.record(z.string(), labelValueText).superRefine(checkKeys);
/** Annotations, whose keys have the grammar of those of labels. */
export const annotationMap = textMap.superRefine(checkKeys);

function checkKeys(given: Readonly<Record<string, unknown>>, context: z.RefinementCtx): void {
  for (const key of Object.keys(given))
    for (const { message } of labelKey.safeParse(key).error?.issues ?? [])
      context.addIssue({ code: "custom", path: [key], message });
}

/** A version in quotes. YAML would parse 1.30 as the number 1.3. */
const versionText = z.string("must be in quotes, or it is read as a number");
export const version = versionText.regex(/^\d+\.\d+(\.\d+)?$/, "must be a version such as 1.6.2");
export const minorVersion = versionText.regex(/^\d+\.\d+$/, "must be a minor version such as 1.35");

/** The lowest plausible minor version. Lower ones have lost their last digit as a number. */
const kubernetesMinorMin = 20;
export const kubernetesVersion = minorVersion.refine(
  (text) => Number(text.split(".")[1]) >= kubernetesMinorMin,
  'must be in quotes, as "1.30" is, or it is read as a number',
);

/** A range of addresses. Clouds reject an address with bits outside the mask. */
export const cidr = z
  .cidrv4("must be a range of addresses such as 10.0.0.0/16")
  .refine(
    (range) => !hasHostBits(range),
    "must begin at its first address, as 10.0.0.0/16 does and 10.0.0.1/16 does not",
  );

function hasHostBits(range: string): boolean {
  const { first, length } = addressesOf(range);
  return first % 2 ** (32 - length) !== 0;
}

/** Returns the first and the last address of a range as numbers, and the number of common bits. */
export function addressesOf(range: string): { readonly first: number; readonly last: number; readonly length: number } {
  const [address = "", length = "32"] = range.split("/");
  const first = address.split(".").reduce((sum, octet) => sum * 256 + Number(octet), 0);
  return { first, last: first + 2 ** (32 - Number(length)) - 1, length: Number(length) };
}

const quantityForm = "must be a Kubernetes quantity such as 500m or 2Gi";
export const quantity = asText(
  z
    .string({ error: ({ input }) => (input === undefined ? "is required" : quantityForm) })
    .refine((text) => amountOf(text) >= 0, quantityForm),
);

/** Returns the folder of a `file://` URI. */
export function fileFolder(uri: string): string {
  return uri.slice("file://".length);
}

/** An amount that a container or a volume needs. */
export const positiveQuantity = asText(
  z.string(quantityForm).refine((text) => amountOf(text) > 0, `${quantityForm}, and more than 0`),
);

const bucketName = /^(s3|gs):\/\/[a-z0-9][-a-z0-9._]+(\/|$)|^file:\/\/\//;
const bucketForm = /^(s3|gs):\/\/[^/]+(\/[^\s*?[\]${}]*)?$|^file:(\/\/\/[^\s:/]+)(\/[^\s:/]+)*\/?$/;

/** Creates the schema of the URI of a bucket with an optional folder and without a trailing slash. */
export function bucketOf(...schemes: readonly ("s3" | "gs" | "file")[]) {
  const message = `must be ${schemes.map((scheme) => (scheme === "file" ? "file:///..." : `${scheme}://...`)).join(" or ")}`;
  return z
    .string(message)
    .refine((uri) => schemes.some((scheme) => uri.startsWith(`${scheme}:${scheme === "file" ? "///" : "//"}`)), message)
    .refine(
      (uri) => bucketName.test(uri),
      "must have a bucket name of lower-case letters, digits, dots, underscores and hyphens",
    )
    .refine(
      (uri) => bucketForm.test(uri),
      "must have a folder without spaces and the characters * ? [ ] $ { }, and with file: without colons",
    )
    .transform((uri) => uri.replace(/\/+$/, ""));
}
