/** Returns the task that opens the jobs for new rows of a table. */
export function automationOf(tableId: number) {
  return { kind: "automate", subject: String(tableId) } as const;
}
