/** The client of the catalog without Kubernetes, clouds and Ray. */
export * from "./catalog-client.ts";
export type * from "./documented-operations.ts";
export * from "./errors.ts";
export * from "./operation-types.ts";
export { pages } from "./pages.ts";
