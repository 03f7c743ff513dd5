import { ownValue } from "@tiltyard/protocol";
import { type ArrowField, readFields } from "./arrow-field.ts";

/**
 * Returns, for each column of a file by name, its type with plain values instead of dictionaries, also in lists and
 * structs, in the syntax of `arrow_cast`; undefined for a column without a dictionary or with values of an unsupported
 * type.
 */
export function plainTypes(file: Buffer): ReadonlyMap<string, string | undefined> {
  return new Map(
    readFields(file).fields.map((field) => [field.name, hasDictionary(field) ? sqlTypeOf(field) : undefined]),
  );
}

function hasDictionary({ dictionary, children }: ArrowField): boolean {
  return dictionary !== undefined || children.some(hasDictionary);
}

/** Returns the types of columns with fixed-size lists in the syntax of `arrow_cast`, by name. */
export function fixedSizeListTypes(file: Buffer): ReadonlyMap<string, string> {
  return new Map(
    readFields(file).fields.flatMap((field) => {
      const type = field.type.kind === "fixed_size_list" ? sqlTypeOf(field) : undefined;
      return type === undefined ? [] : [[field.name, type] as const];
    }),
  );
}

const units = ["Second", "Millisecond", "Microsecond", "Nanosecond"];
const plain: Readonly<Record<string, string>> = {
  null: "Null",
  bool: "Boolean",
  utf8: "Utf8",
  large_utf8: "LargeUtf8",
  binary: "Binary",
  large_binary: "LargeBinary",
  date32: "Date32",
  date64: "Date64",
  list: "List",
  large_list: "LargeList",
};

/** Returns the type of the values of a field in the syntax of `arrow_cast`; undefined for a type that it lacks. */
function sqlTypeOf({ type, children }: ArrowField): string | undefined {
  const { kind, protocol, parameters } = type;
  const [first, second, third] = parameters;
  const types = children.map((child) => {
    const inner = sqlTypeOf(child);
    return inner && `${child.nullable ? "" : "non-null "}${inner}`;
  });
  const [items] = types;
  switch (kind) {
    case "int":
      return `${second === 1 ? "Int" : "UInt"}${first}`;
    case "float":
      return protocol.replace("float", "Float");
    case "decimal":
      return `Decimal${third}(${first}, ${second})`;
    case "fixed_size_binary":
      return `FixedSizeBinary(${first})`;
    case "time":
      return `Time${second}(${units[Number(first)]})`;
    case "duration":
      return `Duration(${units[Number(first)]})`;
    case "timestamp":
      return `Timestamp(${units[Number(first)]}, ${typeof second === "string" ? `Some("${second}")` : "None"})`;
    case "fixed_size_list":
      return items && `FixedSizeList(${first}, ${items})`;
    case "struct":
      // The syntax has no escapes in names.
      if (types.includes(undefined) || children.some(({ name }) => /["\\]/.test(name))) return undefined;
      return `Struct(${children.map(({ name }, index) => `"${name}": ${types[index]}`).join(", ")})`;
    case "list":
    case "large_list":
      return items && `${ownValue(plain, kind)}(${items}${itemName(children)})`;
    default:
      return ownValue(plain, protocol);
  }
}

/** Returns the name of a list's items in the syntax of `arrow_cast`, which has no escapes in names and the default `item`. */
function itemName([item]: readonly ArrowField[]): string {
  return item === undefined || /['\\]/.test(item.name) ? "" : `, field: '${item.name}'`;
}
