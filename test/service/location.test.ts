import { CatalogError } from "@tiltyard/protocol";
import { describe, expect, test } from "vitest";
import { ancestorUris, childLocation, contains, parseLocation } from "../../service/storage/location.ts";

describe("a location", () => {
  test.each([
    ["/data/tables", "file", "", "data/tables", "file:///data/tables"],
    ["file:///data/my%20tables/", "file", "", "data/my tables", "file:///data/my%20tables"],
    ["file://localhost/data", "file", "", "data", "file:///data"],
    ["/data/100%/a b$c", "file", "", "data/100%/a b$c", "file:///data/100%25/a%20b$c"],
    ["s3://bucket/a/b", "s3", "bucket", "a/b", "s3://bucket/a/b"],
    ["s3://bucket", "s3", "bucket", "", "s3://bucket"],
    ["gs://my-bucket/%C3%A9", "gs", "my-bucket", "é", "gs://my-bucket/%C3%A9"],
  ])("%s is read", (text, scheme, bucket, path, uri) => {
    const location = parseLocation(text);
    expect(location).toEqual({ scheme, bucket, path, uri });
    expect(parseLocation(location.uri)).toEqual(location);
  });

  test.each([
    "",
    "relative/path",
    "http://host/x",
    "file://host/x",
    "s3:///x",
    "s3://UPPER/x",
    "s3://b/../c",
    "s3://bucket/a/./b",
    "s3://bucket/a//b",
    "s3://bucket/a%2F%2E%2E/b",
    "s3://bucket/a?versionId=1",
    "s3://bucket/a#b",
    "s3://bucket/a ",
    "s3://bucket/%zz",
    "s3://bucket/a\\b",
    "/a/\u0007",
    `/${"x".repeat(3000)}`,
  ])("%j is refused", (text) => {
    expect(() => parseLocation(text)).toThrow(CatalogError);
  });

  test("contains its descendants, and not siblings with the same prefix", () => {
    const folder = parseLocation("s3://bucket/tables");
    expect(contains(folder, folder)).toBe(true);
    expect(contains(folder, childLocation(folder, "a", "b"))).toBe(true);
    expect(contains(folder, parseLocation("s3://bucket/tables2"))).toBe(false);
    expect(contains(folder, parseLocation("s3://bucket"))).toBe(false);
    expect(contains(parseLocation("s3://bucket"), folder)).toBe(true);
    expect(contains(folder, parseLocation("gs://bucket/tables/a"))).toBe(false);
  });

  test.each([
    ["s3://bucket/a:/b%20/c", ["s3://bucket/a:/b%20", "s3://bucket/a:", "s3://bucket"]],
    ["/a/b", ["file:///a", "file://"]],
    ["s3://bucket", []],
    ["/", []],
  ])("knows the folders that contain %s, the bucket or the root among them", (text, uris) => {
    expect(ancestorUris(parseLocation(text))).toEqual(uris);
  });

  test.each(["s3://bucket", "s3://bucket/a b", "/"])("encodes the names of folders inside %s", (text) => {
    const child = childLocation(parseLocation(text), "a%", "b c");
    expect(child).toEqual(parseLocation(child.uri));
  });
});
