import type { Identifier } from "@tiltyard/protocol";
import { inBackticks, nameOf } from "./format.ts";
import type { PageProps } from "./routes.ts";
import { CopyButton, Hint, Section } from "./view.tsx";

/** The URL of the catalog, without a trailing slash. */
const uri = new URL(".", document.baseURI).href.replace(/\/$/, "");
/** The placeholder of the key, which the console never writes into a snippet. */
const key = "KEY";
const text = (value: unknown) => JSON.stringify(value);
const quoted = (value: string) => `'${value.replaceAll("'", "''")}'`;

/** Returns the code that opens a table, for each client. */
function snippetsOf(id: Identifier): readonly (readonly [client: string, code: string])[] {
  const [namespace, name] = [id.slice(0, -1), id.at(-1) ?? ""];
  const inNamespace = namespace.length === 0 ? "" : `, namespace_path=${text(namespace)}`;
  return [
    [
      "Python",
      `import lancedb

db = lancedb.connect_namespace("rest", {"uri": ${text(uri)}, "header.x-api-key": "${key}"})
table = db.open_table(${text(name)}${inNamespace})
print(table.head(5))`,
    ],
    [
      "Node",
      `import { connectNamespace } from "@lancedb/lancedb";

const db = await connectNamespace("rest", { uri: ${text(uri)}, "header.x-api-key": "${key}" });
const table = await db.openTable(${text(name)}, ${text(namespace)});
console.log(await table.query().limit(5).toArray());`,
    ],
    [
      "DuckDB",
      `INSTALL lance; LOAD lance;
ATTACH ${quoted(namespace.join("$") || "$")} AS lance (TYPE lance, ENDPOINT ${quoted(uri)}, API_KEY '${key}');
SHOW ALL TABLES;
SELECT * FROM lance.main."${name.replaceAll('"', '""')}" LIMIT 5;`,
    ],
    [
      "Spark",
      `# spark-sql --packages org.lance:lance-spark-3.5_2.12:0.4.0, with these properties:
spark.sql.catalog.lance=org.lance.spark.LanceNamespaceSparkCatalog
spark.sql.extensions=org.lance.spark.extensions.LanceSparkSessionExtensions
spark.sql.catalog.lance.impl=rest
spark.sql.catalog.lance.uri=${uri}
spark.sql.catalog.lance.headers.x-api-key=${key}

SELECT * FROM ${["lance", ...id.map(inBackticks)].join(".")} LIMIT 5;`,
    ],
  ];
}

/** The code that opens a table in other programs. */
export function Connect({ id }: PageProps) {
  return (
    <>
      <Hint>
        Replace {key} by an API key of a principal with a role on {nameOf(id)}. Clients read and write the table's files
        directly, so they need access to its storage.
      </Hint>
      {snippetsOf(id).map(([client, code]) => (
        <Section title={client} key={client}>
          <div class="code">
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls the code. */}
            <pre class="log" tabIndex={0}>
              {code}
            </pre>
            <CopyButton text={code} what={`code for ${client}`} />
          </div>
        </Section>
      ))}
    </>
  );
}
