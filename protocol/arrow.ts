import { z } from "zod";
import { characters, items, list, text } from "./bounds.ts";
import { count, Properties } from "./fields.ts";

/** An Arrow type in the JSON format of the protocol. */
export const JsonArrowDataType = z
  .object({
    type: text(characters.name),
    get fields() {
      return list(JsonArrowField, items.columns).optional();
    },
    length: count.optional().describe("The size of values of a fixed-size type."),
  })
  .meta({ id: "JsonArrowDataType" });

const JsonArrowField = z
  .object({
    name: text(characters.path),
    type: JsonArrowDataType,
    nullable: z.boolean(),
    metadata: Properties.optional(),
  })
  .meta({ id: "JsonArrowField" });

export const JsonArrowSchema = z
  .object({ fields: z.array(JsonArrowField), metadata: z.record(z.string(), z.string()).optional() })
  .meta({ id: "JsonArrowSchema" });
export type JsonArrowSchema = z.infer<typeof JsonArrowSchema>;
export type JsonArrowDataType = z.infer<typeof JsonArrowDataType>;
