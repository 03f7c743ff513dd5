import type { Identifier } from "@tiltyard/protocol";
import { useState } from "preact/hooks";
import { type AnswerTo, call, type RequestTo } from "./api.ts";
import type { FieldOf } from "./computed-columns.tsx";
import { amount, counted, dateAndTime } from "./format.ts";
import { useAction, useCall } from "./queries.ts";
import { announce, Facts, Field, Hint, Input, Loaded, Note, Select, SmallButton, sentence } from "./view.tsx";

type Policies = Omit<RequestTo<"putTablePolicy">, "id">;

/** Returns the types of indices that a column of a type can have. */
function indexTypesOf({ type: { type, fields } }: FieldOf): readonly string[] {
  if (type === "fixed_size_list" && /float|int8/.test(fields?.[0]?.type.type ?? "")) return ["IVF_FLAT", "IVF_PQ"];
  if (/list$/.test(type)) return ["LABEL_LIST"];
  if (/utf8$/.test(type)) return ["BTREE", "BITMAP", "NGRAM", "ZONEMAP", "FTS"];
  return /^(struct|map|(large_)?binary)$/.test(type) ? [] : ["BTREE", "BITMAP", "ZONEMAP"];
}

/** The choice of a column and of a type of index that it can have. */
export function IndexFields({
  columns,
  label = "Column",
  none,
}: {
  readonly columns: readonly FieldOf[];
  readonly label?: string;
  /** The text of the choice without a column. */
  readonly none?: string;
}) {
  const possible = columns.filter((column) => indexTypesOf(column).length > 0);
  const [chosen, setChosen] = useState(none === undefined ? possible[0]?.name : undefined);
  const column = possible.find(({ name }) => name === chosen);
  const options = [...(none === undefined ? [] : [["", none] as const]), ...possible.map(({ name }) => name)];
  return (
    <>
      <Field label={label}>
        <Select
          name="column"
          options={options}
          value={chosen ?? ""}
          onChange={({ currentTarget }) => setChosen(currentTarget.value)}
        />
      </Field>
      {column !== undefined && (
        <Field label="Type">
          <Select key={chosen} name="type" options={indexTypesOf(column)} />
        </Field>
      )}
    </>
  );
}

/** The conditions under which the catalog opens maintenance jobs for a table. Writers change them. */
export function Policy(table: TableProperties) {
  const described = useCall("describeTablePolicy", { id: table.id });
  // A form without the policy would remove it.
  return <Loaded query={described}>{(found) => <DescribedPolicy {...table} {...found} />}</Loaded>;
}

interface TableProperties {
  readonly id: Identifier;
  readonly columns: readonly FieldOf[];
  readonly mayWrite: boolean;
}

function DescribedPolicy({
  id,
  columns,
  mayWrite,
  policy,
  problems,
  scheduled,
}: TableProperties & AnswerTo<"describeTablePolicy">) {
  const { ask } = useAction();
  const {
    auto_compact: compact,
    auto_build_index: indices = [],
    auto_clean_up: cleanUp,
    auto_refresh: refresh,
  } = policy;
  /** Returns the next time of a part with a schedule. */
  const next = (part: string, ofColumn?: string) => {
    const found = scheduled.find(({ policy: name, column }) => name === part && column === ofColumn);
    return found === undefined ? "" : `; next at ${dateAndTime(found.next_at_millis)}`;
  };
  const edit = () =>
    ask("Edit the policy", fieldsOf(policy, columns), "Save the policy", async (text) => {
      await call("putTablePolicy", { id, ...changed(policy, text) });
      announce("The policy is saved.");
    });
  return (
    <>
      {compact === undefined && indices.length === 0 && cleanUp === undefined && refresh === undefined ? (
        <Hint>No policy: the catalog opens no job for this table by itself.</Hint>
      ) : (
        <Facts
          of={[
            ["Compact", compact && `at ${amount(compact.small_fragments, "small fragment")}${next("auto_compact")}`],
            ...indices.map(
              ({ column, index_type, new_fragments }) =>
                [
                  `Index ${column}`,
                  `${index_type}, at ${amount(new_fragments, "new fragment")}${next("auto_build_index", column)}`,
                ] as const,
            ),
            [
              "Clean up",
              cleanUp &&
                `at ${amount(cleanUp.versions, "new version")}; keeps ${counted(cleanUp.keep_versions ?? 1)}${next("auto_clean_up")}`,
            ],
            ["Refresh", refresh && `after changes${next("auto_refresh")}`],
          ]}
        />
      )}
      {problems.map(({ policy: part, column, problem }) => (
        <Note key={`${part} ${column}`}>{sentence(`no job can be opened: ${problem}`)}</Note>
      ))}
      {mayWrite && <SmallButton onClick={edit}>Edit the policy</SmallButton>}
    </>
  );
}

const CountField = ({
  label,
  name,
  value,
  placeholder = "never",
}: {
  readonly label: string;
  readonly name: string;
  readonly value: number | null | undefined;
  readonly placeholder?: string;
}) => (
  <Field label={label}>
    <Input name={name} inputMode="numeric" pattern="[1-9]\d*" placeholder={placeholder} defaultValue={value ?? ""} />
  </Field>
);

function fieldsOf({ auto_compact, auto_build_index = [], auto_clean_up }: Policies, columns: readonly FieldOf[]) {
  const free = columns.filter(({ name }) => !auto_build_index.some(({ column }) => column === name));
  return (
    <>
      <CountField
        label="Compact at this number of small fragments"
        name="small"
        value={auto_compact?.small_fragments}
      />
      <CountField label="Clean up at this number of new versions" name="versions" value={auto_clean_up?.versions} />
      <CountField
        label="Versions that a clean-up keeps"
        name="keep"
        value={auto_clean_up?.keep_versions}
        placeholder="1"
      />
      {auto_build_index.map(({ column, new_fragments }) => (
        <CountField
          key={column}
          label={`Index ${column} at this number of new fragments`}
          name={`index ${column}`}
          value={new_fragments}
        />
      ))}
      <IndexFields columns={free} label="Also index the column" none="none" />
      <CountField label="At this number of new fragments" name="new" value={1} placeholder="1" />
    </>
  );
}

/** Returns the policy with the values of the form. An empty count removes its part; other fields remain. */
function changed(policy: Policies, text: (name: string) => string): Policies {
  const count = (name: string) => (text(name) === "" ? undefined : Number(text(name)));
  const [small, versions, keep] = [count("small"), count("versions"), count("keep")];
  const indices = (policy.auto_build_index ?? []).flatMap((index) => {
    const fragments = count(`index ${index.column}`);
    return fragments === undefined ? [] : [{ ...index, new_fragments: fragments }];
  });
  if (text("column") !== "")
    indices.push({ column: text("column"), index_type: text("type"), new_fragments: count("new") ?? 1 });
  const { keep_versions: _, ...cleanUp } = policy.auto_clean_up ?? {};
  return {
    ...(policy.auto_refresh && { auto_refresh: policy.auto_refresh }),
    ...(small !== undefined && { auto_compact: { ...policy.auto_compact, small_fragments: small } }),
    ...(indices.length > 0 && { auto_build_index: indices }),
    ...(versions !== undefined && {
      auto_clean_up: { ...cleanUp, versions, ...(keep !== undefined && { keep_versions: keep }) },
    }),
  };
}
