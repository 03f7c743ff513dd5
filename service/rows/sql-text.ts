/** Returns the name of a column as an SQL expression of Lance. */
export function quotedName(name: string): string {
  return `\`${name.replaceAll("`", "``")}\``;
}

/** Returns a text as an SQL literal. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
