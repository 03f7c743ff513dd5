/** Returns the name of a column as an SQL expression of Lance. */
export function quotedName(name: string): string {
  return `\`${name.replaceAll("`", "``")}\``;
}

declare const converted: unique symbol;
/** An SQL expression of a request, converted by `toExpression`. The child accepts expressions only as this type. */
export type Expression = string & { readonly [converted]: true };

/**
 * Converts an expression of a request for Lance's parser, which ignores any text after the end of an expression. Inside
 * parentheses such a text is an error, so that a delete whose condition lacks an AND fails instead of deleting more rows.
 */
export function toExpression(sql: string): Expression;
export function toExpression(sql: string | undefined): Expression | undefined;
export function toExpression(sql: string | undefined): Expression | undefined {
  // An empty condition selects all rows. A line break ends a comment.
  return (sql && `(${sql}${sql.includes("--") ? "\n" : ""})`) as Expression | undefined;
}

/** Returns a text as an SQL literal. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
