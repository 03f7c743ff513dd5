/** The client of the catalog without Kubernetes, clouds and Ray. */
export * from "./catalog-client.ts";
export type { Context } from "./context-headers.ts";
export type * from "./documented-operations.ts";
export * from "./errors.ts";
export * from "./operation-types.ts";
export { type Page, pages } from "./pages.ts";
