import { z } from "zod";
import { count } from "./fields.ts";

/** Arrow's types as the protocol writes them in JSON. */
export const JsonArrowDataType = z
  .object({
    type: z.string(),
    get fields() {
      return z.array(JsonArrowField).optional();
    },
    length: count.optional().describe("Of fixed-size types."),
  })
  .meta({ id: "JsonArrowDataType" });

const JsonArrowField = z
  .object({
    name: z.string(),
    type: JsonArrowDataType,
    nullable: z.boolean(),
    metadata: z.record(z.string(), z.string()).optional(),
  })
  .meta({ id: "JsonArrowField" });

export const JsonArrowSchema = z
  .object({ fields: z.array(JsonArrowField), metadata: z.record(z.string(), z.string()).optional() })
  .meta({ id: "JsonArrowSchema" });
export type JsonArrowSchema = z.infer<typeof JsonArrowSchema>;
export type JsonArrowDataType = z.infer<typeof JsonArrowDataType>;
