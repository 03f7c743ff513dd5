import { CatalogError } from "@tiltyard/protocol";

/** A folder in the local file system, in S3 or in Google Cloud Storage, for a table or the warehouse. */
export interface Location {
  readonly scheme: "file" | "s3" | "gs";
  /** The name of the bucket; empty for `file`. */
  readonly bucket: string;
  /** The decoded path inside the store without a leading or trailing slash. `manifest_path` starts with it. */
  readonly path: string;
  /** The normalized URI. Equal folders have equal URIs. */
  readonly uri: string;
}

const locationLengthMax = 2048;
const controlCharacter = /\p{Cc}/u;

/**
 * Parses a location where its text enters, from a request, the database or the configuration: a `file:`, `s3:` or `gs:`
 * URI, or an absolute path of the file system.
 *
 * @throws CatalogError InvalidInput
 */
export function parseLocation(text: string): Location {
  const invalid = (why: string) => new CatalogError("InvalidInput", `location: ${why}: ${JSON.stringify(text)}`);
  if (text.length > locationLengthMax) throw new CatalogError("InvalidInput", "location: is too long");
  if (text.startsWith("/")) return locationOf("file", "", checkedPath(text.slice(1), invalid));
  const match = /^(file|s3|gs):\/\/([^/]*)\/?(.*)$/su.exec(text);
  if (match === null) throw invalid("must be a file://, s3:// or gs:// URI, or an absolute path");
  const [, scheme, bucket = "", rest = ""] = match;
  if (scheme === "file") {
    if (bucket !== "" && bucket !== "localhost") throw invalid("must not name a host");
    return locationOf("file", "", checkedPath(decode(rest, invalid), invalid));
  }
  if (!/^[a-z0-9][a-z0-9._-]{1,221}$/.test(bucket))
    throw invalid("must name a bucket: 2 to 222 lowercase letters, digits, dots, dashes and underscores");
  return locationOf(scheme as "s3" | "gs", bucket, checkedPath(decode(rest, invalid), invalid));
}

/** Returns the location of a folder inside another one. @param segments The names of the folders on the way to it. */
export function childLocation({ scheme, bucket, path, uri }: Location, ...segments: readonly string[]): Location {
  return {
    scheme,
    bucket,
    path: [path, ...segments].filter(Boolean).join("/"),
    uri: [uri, ...segments.map(encodeSegment)].join("/"),
  };
}

/** Reports whether `inner` equals `outer` or is inside it. */
export function contains(outer: Location, inner: Location): boolean {
  return `${inner.uri}/`.startsWith(outer.uri.endsWith("/") ? outer.uri : `${outer.uri}/`);
}

/** Returns the URIs of the folders that contain a location, the bucket or the root of the file system among them. */
export function ancestorUris({ uri }: Location): readonly string[] {
  const uris: string[] = [];
  for (let end = uri.lastIndexOf("/"); !uri.startsWith(":/", end - 2); end = uri.lastIndexOf("/", end - 1))
    uris.push(uri.slice(0, end));
  return uris;
}

function locationOf(scheme: Location["scheme"], bucket: string, path: string): Location {
  const encoded = path.split("/").map(encodeSegment).join("/");
  return { scheme, bucket, path, uri: `${scheme}://${bucket}/${encoded}`.replace(/\/$/, "") };
}

/** Encodes only the characters that have a meaning in a URI, so that the rest stays readable. */
function encodeSegment(segment: string): string {
  return encodeURIComponent(segment).replace(/%(24|2B|2C|3A|3D|40)/g, (encoded) => decodeURIComponent(encoded));
}

function decode(text: string, invalid: (why: string) => Error): string {
  if (/[?#]/.test(text)) throw invalid("must have no query and no fragment");
  // Parsers of URLs remove it, and would read another folder.
  if (text.endsWith(" ")) throw invalid("must not end with a space");
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid("is not percent-encoded correctly");
  }
}

function checkedPath(text: string, invalid: (why: string) => Error): string {
  const path = text.replace(/\/$/, "");
  if (!path.isWellFormed() || controlCharacter.test(path)) throw invalid("has a control character");
  if (path.split("/").some((segment) => segment === "." || segment === "..")) throw invalid("must not have . or ..");
  if (path.includes("//") || path.startsWith("/")) throw invalid("has an empty segment");
  if (path.includes("\\")) throw invalid("must not have a backslash");
  return path;
}
