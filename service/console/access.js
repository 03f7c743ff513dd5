import { entriesOf, may } from "./caller.js";
import { call } from "./calls.js";
import { roles } from "./contracts.js";
import { dateAndTime, nameOf, parseName } from "./format.js";
import { useState } from "./libraries/hooks.js";
import { Pages, useAction, useLoaded, usePages, useTitle } from "./loading.js";
import { linkTo } from "./routes.js";
import { links } from "./shell.js";
import {
  announce,
  confirm,
  copyButton,
  dialog,
  empty,
  failure,
  field,
  html,
  input,
  mono,
  select,
  table,
  textsOf,
} from "./view.js";

/**
 * @typedef {import("./main.js").PageProps} PageProps
 * @typedef {import("./format.js").Identifier} Identifier
 * @typedef {import("./view.js").Children} Children
 * @typedef {import("./caller.js").Caller["grants"][number] & { principal: string }} Grant
 * @typedef {import("./calls.js").AnswerTo<"listApiKeys">["api_keys"][number]} Key
 */

const limit = 100;
const principalsMax = 1000;
const roleOptions = roles.map((role) => /** @type {const} */ ([role, role]));

/** The page of roles and API keys. @param {PageProps} props */
export function AccessPage({ caller, tab }) {
  const managesKeys = may(caller, "admin", []);
  const part = managesKeys && tab === "keys" ? "keys" : "grants";
  useTitle(part === "keys" ? "API keys" : "Access");
  const parts = [
    ["grants", "Roles"],
    ["keys", "API keys"],
  ];
  return html`<h1 tabindex="-1">Access</h1>
    ${managesKeys && links("Parts of access", "tabs", parts, part, (key) => linkTo("access", [], key))}
    ${managesKeys ? html`<${Principals} />` : html`<datalist id="principals" />`}
    ${part === "keys" ? html`<${Keys} key="keys" />` : html`<${Grants} key="grants" caller=${caller} />`}`;
}

/** Renders the known principals as suggestions for the fields that expect one. */
function Principals() {
  const { result } = useLoaded((signal) => call("listPrincipals", { limit: principalsMax }, signal));
  return html`<datalist id="principals">${result?.principals.map(({ principal }) => html`<option value=${principal} />`)}</datalist>`;
}

const principalField = () =>
  field("Principal", input({ name: "principal", required: true, maxlength: 256, list: "principals" }));

/** A form that submits an action. @param {{ title: string, action: string, fields: Children, submit: (text: (name: string) => string) => Promise<void> }} props */
function ActionForm({ title, action, fields, submit }) {
  const { run, failed, isBusy } = useAction();
  /** @param {Event} event */
  function onSubmit(event) {
    event.preventDefault();
    const form = event.currentTarget;
    if (form instanceof HTMLFormElement) run(() => submit(textsOf(form)));
  }
  return html`<form onSubmit=${onSubmit} aria-label=${title}><article class="filters">
    ${fields}<button type="submit" aria-disabled=${isBusy}>${action}</button>${failure(failed)}
  </article></form>`;
}

/** Returns a function that revokes an item after a confirmation, and the message about the outcome. */
function useRevoking() {
  const { run, failed } = useAction();
  const [done, setDone] = useState("");
  return {
    /** @param {{ title: string, text: Children, action: string }} question @param {() => Promise<unknown>} work @param {string} told */
    async revoke(question, work, told) {
      if (!(await confirm(question))) return;
      setDone("");
      await run(async () => {
        await work();
        setDone(told);
      });
    },
    message: html`<p role="status">${done}</p>${failure(failed)}`,
  };
}

/** @param {string} label @param {() => void} onClick */
const revokeButton = (label, onClick) =>
  html`<button type="button" class="quiet small" aria-label=${label} onClick=${onClick}>Revoke</button>`;

/** @param {{ caller: PageProps["caller"] }} props */
function Grants({ caller }) {
  const entries = entriesOf(caller, "admin");
  const [turn, setTurn] = useState(0);
  const reload = () => setTurn((before) => before + 1);
  const { revoke, message } = useRevoking();
  const [entry = []] = entries;
  const fields = html`${principalField()}${field("Role", select("role", roleOptions))}
    ${field("Namespace", input({ name: "namespace", placeholder: nameOf(entry) }))}`;

  /** @param {(name: string) => string} text */
  async function give(text) {
    const namespace = text("namespace") === "" ? entry : parseName(text("namespace"));
    const role = roles.find((each) => each === text("role"));
    if (role === undefined) return;
    await call("putGrant", { id: namespace, principal: text("principal"), role });
    announce(`${text("principal")} is ${role} of ${nameOf(namespace)}.`);
    reload();
  }

  /** @param {Grant} grant */
  function onRevoke({ principal, namespace }) {
    const text = html`<strong>${principal}</strong> can do nothing more on <strong>${nameOf(namespace)}</strong>
      from the next request on, unless another role says otherwise.`;
    const question = { title: "Revoke this role?", text, action: "Revoke the role" };
    const work = () => call("revokeGrant", { id: namespace, principal }).finally(reload);
    return revoke(question, work, `${principal} has no role on ${nameOf(namespace)} any more.`);
  }

  return html`
    <${ActionForm} title="Give a role" action="Give the role" fields=${fields} submit=${give} />
    ${message}
    ${entries.map((each) => html`<${GrantsOn} key=${`${nameOf(each)} ${turn}`} id=${each} revoke=${onRevoke} />`)}`;
}

/** @param {{ id: Identifier, revoke: (grant: Grant) => void }} props */
function GrantsOn({ id, revoke }) {
  const pages = usePages(
    (page, signal) => call("listGrants", { id, limit, ...page }, signal),
    (answer) => answer.grants,
  );
  const show = (/** @type {readonly Grant[]} */ grants) =>
    table(
      ["Principal", "Role", "Namespace", ""],
      grants.map((grant) => {
        const { principal, role, namespace } = grant;
        const name = nameOf(namespace);
        return {
          key: `${principal} ${name}`,
          cells: [
            mono(principal),
            html`<span class="badge">${role}</span>`,
            mono(namespace.length === 0 ? html`<em>${name}</em>` : name),
            revokeButton(`Revoke the role of ${principal} on ${name}`, () => revoke(grant)),
          ],
        };
      }),
    );
  const none = () => empty(html`<p>No role is granted here.</p>`);
  return html`<${Pages} pages=${pages} show=${show} empty=${none} more="Show more roles" />`;
}

function Keys() {
  const pages = usePages(
    (page, signal) => call("listApiKeys", { limit, ...page }, signal),
    (answer) => answer.api_keys,
  );
  const { revoke, message } = useRevoking();
  const fields = html`${principalField()}${field("Also give the role", select("role", [["", "none"], ...roleOptions]))}
    ${field("On the namespace", input({ name: "namespace", placeholder: "the whole catalog" }))}`;

  /** @param {(name: string) => string} text */
  async function make(text) {
    const role = roles.find((each) => each === text("role"));
    const grant = role && { namespace: [...parseName(text("namespace"))], role };
    const { principal, key } = await call("createApiKey", { principal: text("principal"), grant });
    pages.reload();
    await dialog(
      `The new key of ${principal}`,
      html`<p>Copy it now. The catalog keeps only a hash of it, and cannot show it again.</p>
        <p class="secret"><code>${key}</code>${copyButton(key, "key")}</p>`,
      html`<button>Done</button>`,
    );
  }

  /** @param {Key} key */
  function onRevoke({ api_key_id: id, principal }) {
    const text = html`Calls with the key <code>${id}</code> of <strong>${principal}</strong> are refused from the next request on.
      This cannot be undone.`;
    const question = { title: "Revoke this key?", text, action: "Revoke the key" };
    const work = () => call("revokeApiKey", { api_key_id: id }).finally(pages.reload);
    return revoke(question, work, `The key ${id} is revoked.`);
  }

  const show = (/** @type {readonly Key[]} */ keys) =>
    table(
      ["Principal", "Key", "Made", ""],
      keys.map((key) => ({
        key: key.api_key_id,
        cells: [
          mono(key.principal),
          mono(key.api_key_id),
          dateAndTime(key.created_at_millis),
          revokeButton(`Revoke the key ${key.api_key_id} of ${key.principal}`, () => onRevoke(key)),
        ],
      })),
    );
  return html`
    <${ActionForm} title="Make an API key" action="Make a key" fields=${fields} submit=${make} />
    ${message}
    <${Pages} pages=${pages} show=${show} empty=${() => empty(html`<p>No keys.</p>`)} more="Show more keys" />`;
}
