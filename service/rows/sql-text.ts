/** Returns the name of a column as an SQL expression of Lance. */
export function quotedName(name: string): string {
  return `\`${name.replaceAll("`", "``")}\``;
}

/**
 * Returns an expression of a request for Lance's parser, which ignores the text after the end of an expression. Inside
 * parentheses, such a text is an error, so that a condition without its second half changes no rows.
 */
export function whole(sql: string): string {
  // The line break ends a comment.
  return sql === "" ? sql : `(${sql}\n)`;
}

/** Returns a text as an SQL literal. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
