import { roles } from "@tiltyard/protocol";
import { useState } from "preact/hooks";
import { type AnswerTo, call } from "./api.ts";
import { type Caller, entriesOf, may } from "./caller.ts";
import { dateAndTime, nameOf, parseName } from "./format.ts";
import { Pages } from "./list.tsx";
import { useAction, useCall, useList, useTitle } from "./queries.ts";
import { linkTo, type PageProps } from "./routes.ts";
import { Links } from "./shell.tsx";
import {
  announce,
  type Children,
  CopyButton,
  confirm,
  dialog,
  Empty,
  Failure,
  Field,
  Input,
  Mono,
  Select,
  Table,
  textsOf,
} from "./view.tsx";

type Grant = AnswerTo<"listGrants">["grants"][number];
type Key = AnswerTo<"listApiKeys">["api_keys"][number];
type Question = Parameters<typeof confirm>[0];
type Revoke = (question: Question, work: () => Promise<unknown>, outcome: string) => Promise<void>;

const limit = 100;
const principalsMax = 1000;
const roleOf = (text: string) => roles.find((each) => each === text);

/** The page of roles and API keys. */
export function AccessPage({ caller, tab }: PageProps) {
  const managesKeys = may(caller, "admin", []);
  const part = managesKeys && tab === "keys" ? "keys" : "grants";
  useTitle(part === "keys" ? "API keys" : "Access");
  const parts = [
    ["grants", "Roles"],
    ["keys", "API keys"],
  ] as const;
  return (
    <>
      <h1 tabIndex={-1}>Access</h1>
      {managesKeys && (
        <Links
          label="Parts of access"
          class="tabs"
          parts={parts}
          shown={part}
          href={(key) => linkTo("access", [], key)}
        />
      )}
      {managesKeys ? <Principals /> : <datalist id="principals" />}
      {part === "keys" ? <Keys /> : <Grants caller={caller} />}
    </>
  );
}

/** The known principals as suggestions for the fields that expect one. */
function Principals() {
  const { data } = useCall("listPrincipals", { limit: principalsMax });
  return (
    <datalist id="principals">
      {data?.principals.map(({ principal }) => (
        <option key={principal} value={principal} />
      ))}
    </datalist>
  );
}

const principalField = (
  <Field label="Principal">
    <Input name="principal" required maxLength={256} list="principals" />
  </Field>
);

/** A form that submits an action. */
function ActionForm({
  title,
  action,
  children,
  submit,
}: {
  readonly title: string;
  readonly action: string;
  readonly children: Children;
  readonly submit: (text: (name: string) => string) => Promise<void>;
}) {
  const { run, failed, isBusy } = useAction();
  function onSubmit(event: Event) {
    event.preventDefault();
    const form = event.currentTarget;
    if (form instanceof HTMLFormElement) run(() => submit(textsOf(form)));
  }
  return (
    <form onSubmit={onSubmit} aria-label={title}>
      <article class="filters">
        {children}
        <button type="submit" aria-disabled={isBusy}>
          {action}
        </button>
        <Failure text={failed} />
      </article>
    </form>
  );
}

/** Returns a function that revokes an item after a confirmation, and the message about the outcome. */
function useRevoking(): { readonly revoke: Revoke; readonly message: Children } {
  const { run, failed } = useAction();
  const [done, setDone] = useState("");
  return {
    async revoke(question, work, outcome) {
      if (!(await confirm(question))) return;
      setDone("");
      run(async () => {
        await work();
        setDone(outcome);
      });
    },
    message: (
      <>
        <p role="status">{done}</p>
        <Failure text={failed} />
      </>
    ),
  };
}

const RevokeButton = ({ label, onClick }: { readonly label: string; readonly onClick: () => void }) => (
  <button type="button" class="quiet small" aria-label={label} onClick={onClick}>
    Revoke
  </button>
);

function Grants({ caller }: { readonly caller: Caller }) {
  const entries = entriesOf(caller, "admin");
  const { revoke, message } = useRevoking();
  const [entry = []] = entries;

  async function grant(text: (name: string) => string) {
    const namespace = text("namespace") === "" ? entry : parseName(text("namespace"));
    const role = roleOf(text("role"));
    if (role === undefined) return;
    await call("putGrant", { id: namespace, principal: text("principal"), role });
    announce(`${text("principal")} is ${role} of ${nameOf(namespace)}.`);
  }
  return (
    <>
      <ActionForm title="Grant a role" action="Grant the role" submit={grant}>
        {principalField}
        <Field label="Role">
          <Select name="role" options={roles} />
        </Field>
        <Field label="Namespace">
          <Input name="namespace" placeholder={nameOf(entry)} />
        </Field>
      </ActionForm>
      {message}
      {entries.map((each) => (
        <GrantsOn key={nameOf(each)} id={each} revoke={revoke} />
      ))}
    </>
  );
}

function GrantsOn({ id, revoke }: { readonly id: readonly string[]; readonly revoke: Revoke }) {
  const list = useList("listGrants", { id, limit }, ({ grants }) => grants);
  function onRevoke({ principal, namespace }: Grant) {
    const name = nameOf(namespace);
    const text = (
      <>
        <strong>{principal}</strong> can do nothing more on <strong>{name}</strong> from the next request on, unless
        another role says otherwise.
      </>
    );
    const question = { title: "Revoke this role?", text, action: "Revoke the role" };
    const work = () => call("revokeGrant", { id: namespace, principal });
    return revoke(question, work, `${principal} has no role on ${name} any more.`);
  }
  const rowOf = (grant: Grant) => {
    const { principal, role, namespace } = grant;
    const name = nameOf(namespace);
    return {
      key: `${principal} ${name}`,
      cells: [
        <Mono>{principal}</Mono>,
        <span class="badge">{role}</span>,
        <Mono>{namespace.length === 0 ? <em>{name}</em> : name}</Mono>,
        <RevokeButton label={`Revoke the role of ${principal} on ${name}`} onClick={() => onRevoke(grant)} />,
      ],
    };
  };
  return (
    <Pages
      list={list}
      show={(grants) => <Table columns={["Principal", "Role", "Namespace", ""]} rows={grants.map(rowOf)} />}
      empty={() => <Empty text="No role is granted here." />}
      more="Show more roles"
    />
  );
}

function Keys() {
  const list = useList("listApiKeys", { limit }, (answer) => answer.api_keys);
  const { revoke, message } = useRevoking();

  async function create(text: (name: string) => string) {
    const role = roleOf(text("role"));
    const grant = role && { namespace: [...parseName(text("namespace"))], role };
    const { principal, key } = await call("createApiKey", { principal: text("principal"), grant });
    list.refetch();
    await dialog(
      `The new key of ${principal}`,
      <>
        <p>Copy it now. The catalog keeps only a hash of it, and cannot show it again.</p>
        <p class="secret">
          <code>{key}</code>
          <CopyButton text={key} what="key" />
        </p>
      </>,
      <button type="submit">Done</button>,
    );
  }
  function onRevoke({ api_key_id, principal }: Key) {
    const text = (
      <>
        Calls with the key <code>{api_key_id}</code> of <strong>{principal}</strong> are refused from the next request
        on. This cannot be undone.
      </>
    );
    const question = { title: "Revoke this key?", text, action: "Revoke the key" };
    return revoke(question, () => call("revokeApiKey", { api_key_id }), `The key ${api_key_id} is revoked.`);
  }
  const rowOf = (key: Key) => ({
    key: key.api_key_id,
    cells: [
      <Mono>{key.principal}</Mono>,
      <Mono>{key.api_key_id}</Mono>,
      dateAndTime(key.created_at_millis),
      <RevokeButton label={`Revoke the key ${key.api_key_id} of ${key.principal}`} onClick={() => onRevoke(key)} />,
    ],
  });
  return (
    <>
      <ActionForm title="Make an API key" action="Make a key" submit={create}>
        {principalField}
        <Field label="Also grant the role">
          <Select name="role" options={[["", "none"], ...roles]} />
        </Field>
        <Field label="On the namespace">
          <Input name="namespace" placeholder="the whole catalog" />
        </Field>
      </ActionForm>
      {message}
      <Pages
        list={list}
        show={(keys) => <Table columns={["Principal", "Key", "Made", ""]} rows={keys.map(rowOf)} />}
        empty={() => <Empty text="No keys." />}
        more="Show more keys"
      />
    </>
  );
}
