import type { Identifier } from "@tiltyard/protocol";
import { call, type RequestTo } from "./api.ts";
import { useAction, useCall } from "./queries.ts";
import {
  announce,
  Facts,
  Failure,
  Field,
  Hint,
  Input,
  Note,
  readForm,
  Select,
  SmallButton,
  sentence,
} from "./view.tsx";

type Policies = Omit<RequestTo<"putTablePolicy">, "id">;

export const indexTypes = ["BTREE", "BITMAP", "LABEL_LIST", "NGRAM", "ZONEMAP", "FTS", "IVF_FLAT", "IVF_PQ"] as const;

/** Parses the policy of a table, whose parts are properties with JSON. */
function policyOf(properties: Readonly<Record<string, string>>): Policies {
  const names = ["auto_compact", "auto_build_index", "auto_clean_up"] as const;
  return Object.fromEntries(
    names.flatMap((name) => {
      const { [name]: json } = properties;
      return json === undefined ? [] : [[name, JSON.parse(json)]];
    }),
  );
}

/** The conditions under which the catalog opens maintenance jobs for a table. Writers change them. */
export function Policy({
  id,
  properties,
  columns,
  mayWrite,
}: {
  readonly id: Identifier;
  readonly properties: Readonly<Record<string, string>>;
  readonly columns: readonly string[];
  readonly mayWrite: boolean;
}) {
  const { run, failed, isBusy } = useAction();
  const { data } = useCall("listPolicyProblems", { id });
  const policy = policyOf(properties);
  const { auto_compact: compact, auto_build_index: indices = [], auto_clean_up: cleanUp } = policy;
  async function edit() {
    const text = await readForm("Edit the policy", fieldsOf(policy, columns), "Save the policy");
    if (text === undefined) return;
    run(async () => {
      await call("putTablePolicy", { id, ...changed(policy, text) });
      announce("The policy is saved.");
    });
  }
  return (
    <>
      {compact === undefined && indices.length === 0 && cleanUp === undefined ? (
        <Hint>No policy: the catalog opens no job for this table by itself.</Hint>
      ) : (
        <Facts
          of={[
            ["Compact", compact && `when ${compact.small_fragments} fragments are small`],
            ...indices.map(
              ({ column, index_type, new_fragments }) =>
                [`Index ${column}`, `${index_type}, when ${new_fragments} fragments are new`] as const,
            ),
            [
              "Clean up",
              cleanUp && `when ${cleanUp.versions} versions are new, and keep ${cleanUp.keep_versions ?? 1}`,
            ],
          ]}
        />
      )}
      {data?.problems.map(({ policy: part, column, problem }) => (
        <Note key={`${part} ${column}`}>{sentence(`no job can be opened: ${problem}`)}</Note>
      ))}
      {mayWrite && (
        <SmallButton aria-disabled={isBusy} onClick={edit}>
          Edit the policy
        </SmallButton>
      )}
      <Failure text={failed} />
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

function fieldsOf({ auto_compact, auto_build_index = [], auto_clean_up }: Policies, columns: readonly string[]) {
  const free = columns.filter((name) => !auto_build_index.some(({ column }) => column === name));
  return (
    <>
      <CountField label="Compact when so many fragments are small" name="small" value={auto_compact?.small_fragments} />
      <CountField label="Clean up when so many versions are new" name="versions" value={auto_clean_up?.versions} />
      <CountField
        label="Versions that a clean-up keeps"
        name="keep"
        value={auto_clean_up?.keep_versions}
        placeholder="1"
      />
      {auto_build_index.map(({ column, new_fragments }) => (
        <CountField
          key={column}
          label={`Index ${column} when so many fragments are new`}
          name={`index ${column}`}
          value={new_fragments}
        />
      ))}
      <Field label="Also index the column">
        <Select name="column" options={[["", "none"], ...free]} />
      </Field>
      <Field label="Type of this index">
        <Select name="type" options={indexTypes} />
      </Field>
      <CountField label="When so many fragments are new" name="new" value={1} placeholder="1" />
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
    ...(small !== undefined && { auto_compact: { ...policy.auto_compact, small_fragments: small } }),
    ...(indices.length > 0 && { auto_build_index: indices }),
    ...(versions !== undefined && {
      auto_clean_up: { ...cleanUp, versions, ...(keep !== undefined && { keep_versions: keep }) },
    }),
  };
}
