import type { ComponentChildren, h } from "preact";

/** The type of htm. The package's own declaration has a default export that TypeScript does not find from a module. */
declare const htm: {
  bind(create: typeof h): (strings: TemplateStringsArray, ...values: readonly unknown[]) => ComponentChildren;
};
export default htm;
