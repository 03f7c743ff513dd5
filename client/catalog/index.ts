/** The catalog's client alone: without Kubernetes, clouds and Ray. */
export * from "./catalog-client.ts";
export * from "./errors.ts";
export { pages } from "./pages.ts";
