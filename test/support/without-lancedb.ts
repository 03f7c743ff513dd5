/** Loaded before a program, it makes Lance's library a package that is not installed. */
import { registerHooks } from "node:module";

registerHooks({
  resolve: (specifier, context, next) => {
    if (specifier.startsWith("@lancedb/")) throw new Error(`Cannot find package '${specifier}'`);
    return next(specifier, context);
  },
});
