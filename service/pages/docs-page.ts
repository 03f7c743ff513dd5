import type { Hono } from "hono";
import { etag } from "hono/etag";
import { secureHeaders } from "hono/secure-headers";
import { findAsset } from "./console-page.ts";

const page = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Tiltyard catalog</title>
    <link rel="stylesheet" href="docs/swagger-ui.css">
  </head>
  <body>
    <div id="docs"></div>
    <script src="docs/swagger-ui-bundle.js"></script>
    <script src="docs/swagger-ui-standalone-preset.js"></script>
    <script src="docs/start.js"></script>
  </body>
</html>
`;

type Documents = Readonly<Record<string, { readonly title: string }>>;

/** Serves Swagger UI, which `@tiltyard/console` contains, with all scripts and styles from this service. */
export function mountDocsPage(app: Hono, documents: Documents): void {
  // Swagger UI sets styles on its elements and shows data: images.
  const headers = secureHeaders({
    strictTransportSecurity: false,
    contentSecurityPolicy: {
      defaultSrc: ["'self'"],
      styleSrc: ["'self'", "'unsafe-inline'"],
      imgSrc: ["'self'", "data:"],
      frameAncestors: ["'none'"],
    },
  });
  app.use("/docs", headers);
  app.use("/docs/*", headers);
  app.get("/docs", (c) => c.html(page));
  const start = startScript(documents);
  app.get("/docs/start.js", (c) => c.body(start, 200, { "content-type": "text/javascript" }));
  app.get("/docs/:name{swagger-ui[a-z.-]*}", etag(), async (c, next) => {
    const asset = await findAsset(c.req.param("name"));
    return asset === undefined ? next() : c.body(asset.content, 200, { "content-type": asset.type });
  });
}

function startScript(documents: Documents): string {
  const urls = Object.entries(documents).map(([path, { title }]) => ({ url: path.slice(1), name: title }));
  return `SwaggerUIBundle({
  urls: ${JSON.stringify(urls)},
  dom_id: "#docs",
  deepLinking: true,
  presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset],
  layout: "StandaloneLayout",
});
`;
}
