/** The client of the catalog without Kubernetes, clouds and Ray. */
export * from "./catalog-client.ts";
export * from "./errors.ts";
export { pages } from "./pages.ts";
