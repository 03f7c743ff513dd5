/**
 * Returns the value of a name from outside, such as a request or a file; undefined if the record has no
 * such name. A plain access also finds the members of every object, such as `constructor`.
 */
export function ownValue<Value>(record: Readonly<Record<string, Value>>, name: string): Value | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}
