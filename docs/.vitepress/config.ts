/** The site of these pages. `npm run docs` builds it with VitePress and fails on dead links. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const docs = join(import.meta.dirname, "..");

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
  return files.map((file) => ({
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
  // Files of the project outside of the site: test/docs.test.ts checks these links.
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
