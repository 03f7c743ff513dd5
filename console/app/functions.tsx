import { formatSignature, type Identifier } from "@tiltyard/protocol";
import { call } from "./api.ts";
import { Pages, titleOf } from "./list.tsx";
import { itemsOf, useAction, useList } from "./queries.ts";
import { confirm, Failure, Mono, Section, SmallButton, Table, Time } from "./view.tsx";

/** The versions of the Functions of a namespace; nothing without any. Writers drop those that no column uses. */
export function Functions({ id, mayDrop }: { readonly id: Identifier; readonly mayDrop: boolean }) {
  const list = useList("listFunctions", { id }, ({ functions }) => functions.map(({ definition }) => definition));
  const { run, failed } = useAction();
  if (list.error === null && !itemsOf(list)?.length) return null;
  async function drop(name: string, version: string) {
    const text = "Its source is deleted. A version that a column uses is kept.";
    if (!(await confirm({ title: `Drop version ${version} of ${name}?`, text, action: "Drop the version" }))) return;
    run(() => call("dropFunction", { id: [...id, name], version }));
  }
  return (
    <Section title={titleOf("Functions", list)}>
      <Pages
        list={list}
        show={(versions) => (
          <Table
            columns={["Function", "Version", "Signature", "Python", "Registered", ...(mayDrop ? [""] : [])]}
            rows={versions.map(({ name, version, signature, image, disabled, created_at_millis }) => ({
              key: `${name} ${version}`,
              cells: [
                <Mono>{name}</Mono>,
                disabled ? `${version}, without its packages` : version,
                <Mono>{formatSignature(signature)}</Mono>,
                image.descriptor.python_version,
                <Time at={created_at_millis} />,
                ...(mayDrop
                  ? [
                      <SmallButton
                        key="drop"
                        aria-label={`Drop version ${version} of ${name}`}
                        onClick={() => drop(name, version)}
                      >
                        Drop
                      </SmallButton>,
                    ]
                  : []),
              ],
            }))}
          />
        )}
        empty={() => null}
        more="Show more Functions"
      />
      <Failure text={failed} />
    </Section>
  );
}

/** The names of the secrets of a namespace; nothing without any. */
export function Secrets({ id }: { readonly id: Identifier }) {
  const list = useList("listSecrets", { id }, ({ secrets }) => secrets);
  if (list.error === null && !itemsOf(list)?.length) return null;
  return (
    <Section title={titleOf("Secrets of Functions", list)}>
      <Pages
        list={list}
        show={(secrets) => (
          <Table columns={["Secret"]} rows={secrets.map(({ name }) => ({ key: name, cells: [<Mono>{name}</Mono>] }))} />
        )}
        empty={() => null}
        more="Show more secrets"
      />
    </Section>
  );
}
