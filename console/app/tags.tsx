import type { Identifier } from "@tiltyard/protocol";
import { call } from "./api.ts";
import { may } from "./caller.ts";
import { mainBranch, useTags } from "./history.tsx";
import { useAction } from "./queries.ts";
import type { PageProps } from "./routes.ts";
import { announce, confirm, Empty, Failure, Field, Hint, Input, Loaded, SmallButton, Table } from "./view.tsx";

/** The tags of a table. Writers create and delete them. */
export function Tags({ id, caller }: PageProps) {
  const mayWrite = may(caller, "writer", id);
  const { run, failed } = useAction();
  async function remove(tag: string) {
    const text = "Its version stays, and clean-ups may delete it from then on.";
    if (!(await confirm({ title: `Delete the tag ${tag}?`, text, action: "Delete the tag" }))) return;
    run(() => call("deleteTableTag", { id, tag }));
  }
  return (
    <>
      {mayWrite && <CreateTag id={id} />}
      <Loaded query={useTags(id)}>
        {(tags) => {
          const rows = Object.entries(tags).sort(([a], [b]) => (a < b ? -1 : 1));
          if (rows.length === 0)
            return (
              <Empty text="No tags.">
                <Hint>A tag names a version, so that it is found again and never cleaned up.</Hint>
              </Empty>
            );
          return (
            <Table
              columns={["Tag", "Version", "Branch", ...(mayWrite ? [""] : [])]}
              rows={rows.map(([key, { version, branch = mainBranch }]) => ({
                key,
                cells: [
                  <span class="badge tag">{key}</span>,
                  version,
                  branch,
                  ...(mayWrite
                    ? [
                        <button
                          key="delete"
                          type="button"
                          class="quiet small"
                          aria-label={`Delete the tag ${key}`}
                          onClick={() => remove(key)}
                        >
                          Delete
                        </button>,
                      ]
                    : []),
                ],
              }))}
            />
          );
        }}
      </Loaded>
      <Failure text={failed} />
    </>
  );
}

function CreateTag({ id }: { readonly id: Identifier }) {
  const { ask } = useAction();
  const fields = (
    <>
      <Field label="Tag">
        <Input name="tag" required />
      </Field>
      <Field label="Version">
        <Input name="version" required inputMode="numeric" pattern="\d+" />
      </Field>
      <Field label="Branch">
        <Input name="branch" placeholder={mainBranch} />
      </Field>
    </>
  );
  const create = () =>
    ask("Create a tag", fields, "Create the tag", async (text) => {
      const branch = text("branch");
      const onBranch = branch !== "" && branch !== mainBranch && { branch };
      await call("createTableTag", { id, tag: text("tag"), version: Number(text("version")), ...onBranch });
      announce(`The tag ${text("tag")} is created.`);
    });
  return (
    <div class="buttons">
      <SmallButton onClick={create}>Create a tag</SmallButton>
    </div>
  );
}
