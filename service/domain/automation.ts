/** The task that opens the jobs that new rows of a table are for. */
export function automationOf(tableId: number) {
  return { kind: "automate", subject: String(tableId) } as const;
}
