import { createConfig, lintFromString } from "@redocly/openapi-core";
import { beforeAll, describe, expect, test } from "vitest";
import { fieldDescriptions } from "../../protocol/api-document/field-descriptions.ts";
import { operationDescriptions } from "../../protocol/api-document/operation-descriptions.ts";
import { useCatalog } from "../support/catalog.ts";

const catalog = useCatalog();
const paths = ["/openapi.json", "/management/v1/openapi.json", "/remote/openapi.json"] as const;
let documents: ReadonlyMap<string, string>;
beforeAll(async () => {
  const texts = paths.map(async (path) => [path, await (await catalog.fetch(path)).text()] as const);
  documents = new Map(await Promise.all(texts));
});

describe.each(paths)("the document %s", (path) => {
  test("passes the recommended rules of Redocly", async () => {
    const config = await createConfig({
      extends: ["recommended"],
      rules: {
        // The second method of an operation has no id, because ids are unique.
        "operation-operationId": "off",
        // LanceDB's remote client puts a slash at the end of paths.
        ...(path.startsWith("/remote") && ({ "no-path-trailing-slash": "off" } as const)),
      },
    });
    const problems = await lintFromString({ source: documents.get(path) ?? "", absoluteRef: "openapi.json", config });
    expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual([]);
  });

  test("describes every parameter and field", () => {
    const undescribed: string[] = [];
    const document = JSON.parse(documents.get(path) ?? "");
    const isDescribed = ({ $ref, description, schema, anyOf }: Field): boolean =>
      description !== undefined ||
      ($ref !== undefined && isDescribed(document.components.schemas[$ref.split("/").at(-1) ?? ""])) ||
      (schema !== undefined && isDescribed(schema)) ||
      (anyOf?.some(isDescribed) ?? false);
    const visit = (value: unknown, place: string): void => {
      if (typeof value !== "object" || value === null) return;
      for (const [key, inner] of Object.entries(value)) {
        if (key === "parameters")
          for (const parameter of inner) if (!isDescribed(parameter)) undescribed.push(`${place}?${parameter.name}`);
        if (key === "example") continue;
        if (key !== "properties") visit(inner, `${place}/${key}`);
        else
          for (const [name, field] of Object.entries<Field>(inner)) {
            if (!isDescribed(field)) undescribed.push(`${place}.${name}`);
            visit(field, `${place}.${name}`);
          }
      }
    };
    visit(document, "");
    expect(undescribed, "describe them in the contract, or in field-descriptions.ts").toEqual([]);
  });
});

interface Field {
  readonly $ref?: string;
  readonly description?: string;
  readonly schema?: Field;
  readonly anyOf?: readonly Field[];
}

test.each(paths)("%s describes each operation with more than its summary, and with the required role", (path) => {
  const methods = Object.values(JSON.parse(documents.get(path) ?? "").paths).flatMap((item) =>
    Object.values(item as object),
  );
  expect(methods.length).toBeGreaterThan(10);
  const operations = methods as readonly { summary: string; description?: string; operationId?: string }[];
  for (const { summary, description = "", operationId } of operations) {
    const [rules = "", ...rest] = description.split("\n\n");
    expect(rules, `operation-descriptions.ts: ${operationId}`).toMatch(/^(?!Requires)[A-Z\d].*\.$/);
    if (operationId !== "DescribeCaller") expect(rest.join(), summary).toContain("Requires the role `");
  }
});

test("every description of an operation belongs to one", () => {
  const texts = [...documents.values()].join("\n");
  const unused = Object.entries(operationDescriptions).filter(
    ([, text]) => !texts.includes(JSON.stringify(text).slice(1, -1)),
  );
  expect(unused).toEqual([]);
});

test("every shared description belongs to a field", () => {
  const texts = [...documents.values()].join("\n");
  const unused = Object.entries(fieldDescriptions).filter(([, text]) => !texts.includes(JSON.stringify(text)));
  expect(unused).toEqual([]);
});
