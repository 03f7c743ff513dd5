import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Hono } from "hono";
import type { DocumentedOperations } from "./openapi.ts";

const assets = {
  "swagger-ui.css": "text/css",
  "swagger-ui-bundle.js": "text/javascript",
  "swagger-ui-standalone-preset.js": "text/javascript",
} as const;

/** Scripts and styles come from this service alone; Swagger UI sets styles on its elements and shows data: images. */
const contentSecurityPolicy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:";

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

/** Starts Swagger UI with a choice of documents. */
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

type Documents = Readonly<Record<string, Pick<DocumentedOperations, "title">>>;

/**
 * Serves a page to browse and try the operations, with nothing fetched from elsewhere.
 *
 * @param documents The OpenAPI documents by their paths.
 */
export function mountDocsPage(app: Hono, documents: Documents): void {
  const folder = dirname(fileURLToPath(import.meta.resolve("swagger-ui-dist/package.json")));

  app.get("/docs", (context) => {
    context.header("content-security-policy", contentSecurityPolicy);
    return context.html(page);
  });
  const start = startScript(documents);
  app.get("/docs/start.js", (context) => context.body(start, 200, { "content-type": "text/javascript" }));
  for (const [name, contentType] of Object.entries(assets))
    app.get(`/docs/${name}`, async (context) =>
      context.body(await readFile(join(folder, name)), 200, { "content-type": contentType }),
    );
}
