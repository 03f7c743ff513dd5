import { CatalogError, contracts, managementContracts, remoteContracts } from "@tiltyard/protocol";
import { openApiDocument } from "@tiltyard/protocol/api-document";
import { Hono } from "hono";
import type { DevelopmentIssuer } from "../auth/development-issuer.ts";
import type { Metrics } from "../metrics.ts";
import { mountConsole, type SignIn } from "./console-page.ts";
import { mountDocsPage } from "./docs-page.ts";

/** The OpenAPI documents by path. The document of the protocol contains only the operations of the protocol. */
const documents = {
  "/openapi.json": {
    title: "Tiltyard catalog",
    description: "The Lance REST Catalog protocol.",
    contracts: contracts,
  },
  "/management/v1/openapi.json": {
    title: "Tiltyard catalog: management",
    description: "Principals and roles, the audit, jobs, and dropped tables.",
    contracts: managementContracts,
  },
  "/remote/openapi.json": {
    title: "Tiltyard catalog: LanceDB's remote client",
    description:
      'The operations that lancedb.connect("db://...", host_override=...) calls, except those on namespaces.',
    contracts: remoteContracts,
  },
} as const;

export interface PageDeps {
  /** The issuer of development tokens; undefined if an OIDC issuer issues the tokens. */
  readonly developmentIssuer: DevelopmentIssuer | undefined;
  /** The parameters of sign-ins in the console through an OIDC issuer; undefined if it has none. */
  readonly signIn: SignIn | undefined;
  /** Reports whether the service accepts requests; false while it stops. */
  readonly isReady: () => Promise<boolean>;
  readonly metrics: Metrics;
}

/** Serves the routes outside the API, which need no credential. @param tokenPath Issues development tokens. */
export function pages({ metrics, isReady, developmentIssuer, signIn }: PageDeps, tokenPath: string): Hono {
  const app = new Hono();
  for (const [path, document] of Object.entries(documents)) {
    // Rendering lasts a fifth of a start, and few processes need the document.
    let rendered: ReturnType<typeof openApiDocument> | undefined;
    app.get(path, (c) => {
      rendered ??= openApiDocument({ ...document, tokenUrl: developmentIssuer && tokenPath });
      return c.json(rendered);
    });
  }
  app.get("/metrics", async (c) => c.body(await metrics.text(), 200, { "content-type": metrics.contentType }));
  app.get("/health/live", (c) => c.json({ status: "live" }));
  app.get("/health/ready", async (c) => {
    if (await isReady()) return c.json({ status: "ready" });
    throw new CatalogError("ServiceUnavailable", "the service is not ready");
  });
  // Redirects browsers. A relative path also works behind a proxy that serves the catalog below a path.
  app.get("/", (c, next) => (c.req.header("accept")?.includes("text/html") ? c.redirect("console") : next()));
  mountDocsPage(app, documents);
  mountConsole(app, signIn);
  return app;
}
