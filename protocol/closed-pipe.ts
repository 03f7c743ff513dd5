/** A stream of a program's output. */
interface Output {
  on(event: "error", listener: (error: Error & { readonly code?: string }) => void): unknown;
}

/** Ignores closed pipes. A reader of the output, such as `head`, may exit early, which must not terminate the program. */
export function ignoreClosedPipes(outputs: readonly Output[]): void {
  for (const output of outputs)
    output.on("error", (error) => {
      if (error.code !== "EPIPE") throw error;
    });
}
