/** The site of these pages. `npm run docs` builds it with VitePress and fails on dead links. */
import { cpSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const docs = join(import.meta.dirname, "..");

/** The first pages of the folders whose order is not that of their names. */
const firstPages = [
  ...["tour", "local-jobs", "kubernetes", "kind", "cloud", "packages"],
  ...["jobs", "tables", "platform", "gke", "eks", "existing", "teams", "stack-operations"],
  ...["catalog", "production", "runbooks", "cli", "settings", "stack", "outputs"],
];

/** The folders of pages in the order in which readers need them. */
const folders = {
  "get-started": "Get started",
  guides: "Guides",
  clients: "Clients",
  operations: "Operations",
  reference: "Reference",
  internals: "Internals",
};

interface Item {
  readonly text: string;
  readonly link: string;
}

/** Returns the pages of a folder under their titles, its index first. */
function pagesOf(folder: string): Item[] {
  const files = readdirSync(join(docs, folder)).filter((file) => file.endsWith(".md"));
  const rank = (file: string) => firstPages.indexOf(file.replace(/\.md$/, "")) + 1 || firstPages.length + 1;
  return files
    .toSorted((a, b) => Number(b === "README.md") - Number(a === "README.md") || rank(a) - rank(b))
    .map((file) => ({
      text: titleOf(join(folder, file)),
      link: `/${folder}/${file === "README.md" ? "" : file.replace(/\.md$/, "")}`,
    }));
}

function titleOf(file: string): string {
  const [, title = file] = /^# (.+)$/m.exec(readFileSync(join(docs, file), "utf8")) ?? [];
  return title.replaceAll("`", "");
}

export default {
  title: "Tiltyard",
  description: "A Lance REST catalog, and the Kubernetes platform for Ray jobs over Lance tables",
  rewrites: { "README.md": "index.md", ":folder/README.md": ":folder/index.md" },
  cleanUrls: true,
  // The names of settings would otherwise push their meaning out of the page.
  head: [["style", {}, ".vp-doc table { display: table } .vp-doc td, .vp-doc td code { overflow-wrap: anywhere }"]],
  // Files of the project outside of the site, which the build copies: test/docs.test.ts checks these links.
  buildEnd({ outDir }: { readonly outDir: string }) {
    for (const folder of ["examples", "runner"].filter((each) => existsSync(join(docs, "..", each))))
      cpSync(join(docs, "..", folder), join(outDir, folder), {
        recursive: true,
        filter: (path) => !/node_modules|__pycache__/.test(path),
      });
  },
  ignoreDeadLinks: [/^(\.\/)?(\.\.\/)+(examples|runner)\//],
  themeConfig: {
    search: { provider: "local" },
    outline: [2, 3],
    sidebar: [
      { text: titleOf("concepts.md"), link: "/concepts" },
      ...Object.entries(folders).map(([folder, text]) => ({
        text,
        items: pagesOf(folder),
        collapsed: folder !== "get-started",
      })),
      { text: titleOf("troubleshooting.md"), link: "/troubleshooting" },
    ],
  },
};
