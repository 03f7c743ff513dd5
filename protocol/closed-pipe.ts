/** A stream of a program's output. */
interface Output {
  on(event: "error", listener: (error: Error & { readonly code?: string }) => void): unknown;
}

/** A reader of a program's output, such as `head`, may leave when it has enough: that does not end the program. */
export function ignoreClosedPipes(outputs: readonly Output[]): void {
  for (const output of outputs)
    output.on("error", (error) => {
      if (error.code !== "EPIPE") throw error;
    });
}
