import { type BodyBounds, CatalogError } from "@tiltyard/protocol";

const [quote, backslash, comma, colon] = ['"', "\\", ",", ":"].map((each) => each.charCodeAt(0));
const [openArray, closeArray, openObject, closeObject] = ["[", "]", "{", "}"].map((each) => each.charCodeAt(0));
const prototypeKey = "__proto__";
/** The length of that key if all its characters are escaped. */
const prototypeKeyBytesMax = 6 * prototypeKey.length;

/**
 * Counts the values and keys of a JSON text in one pass over its bytes before it is parsed, because a parsed value
 * needs many times the memory of its text. Invalid JSON passes this check; the parser rejects it.
 *
 * @throws CatalogError InvalidInput if the body has too many values, keys or levels, or the key `__proto__`, which
 * would set the prototype of an object.
 */
export function checkJsonBounds(json: Uint8Array, bounds: BodyBounds): void {
  let [values, keys, depth] = [1, 0, 0];
  /** The start and the end of the last string. */
  let [start, end, hasEscapes] = [0, 0, false];
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at];
    if (byte === quote) {
      start = at + 1;
      hasEscapes = false;
      for (at += 1; at < json.length && json[at] !== quote; at += 1)
        if (json[at] === backslash) {
          hasEscapes = true;
          at += 1;
        }
      end = at;
    } else if (byte === comma) {
      values += 1;
      if (values > bounds.values) refuse(`has more than ${bounds.values} values`);
    } else if (byte === colon) {
      keys += 1;
      if (keys > bounds.keys) refuse(`has more than ${bounds.keys} keys`);
      if (isPrototype(json, start, end, hasEscapes)) refuse(`has a key ${prototypeKey}`);
    } else if (byte === openArray || byte === openObject) {
      values += 1;
      depth += 1;
      if (values > bounds.values) refuse(`has more than ${bounds.values} values`);
      if (depth > bounds.depth) refuse(`nests deeper than ${bounds.depth} levels`);
    } else if (byte === closeArray || byte === closeObject) depth -= 1;
  }
}

function isPrototype(json: Uint8Array, start: number, end: number, hasEscapes: boolean): boolean {
  const length = end - start;
  if (length < prototypeKey.length || length > prototypeKeyBytesMax) return false;
  if (!hasEscapes && length > prototypeKey.length) return false;
  const text = Buffer.from(json.buffer, json.byteOffset + start, length).toString("latin1");
  return (
    text.replaceAll(/\\u00([567][0-9a-f])/gi, (_, code) => String.fromCharCode(Number.parseInt(code, 16))) ===
    prototypeKey
  );
}

function refuse(why: string): never {
  throw new CatalogError("InvalidInput", `the body ${why}`);
}
