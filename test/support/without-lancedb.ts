/** Hides Lance's library from a program: `node --import without-lancedb.ts`. */
import { registerHooks } from "node:module";

registerHooks({
  resolve: (specifier, context, next) => {
    if (specifier.startsWith("@lancedb/")) throw new Error(`Cannot find package '${specifier}'`);
    return next(specifier, context);
  },
});
