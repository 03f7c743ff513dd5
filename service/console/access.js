import * as api from "./api.js";
import { entriesOf, grantableRoles, may } from "./caller.js";
import { announce, confirm, copyButton, h } from "./dom.js";
import { field } from "./filters.js";
import { dateAndTime, nameOf, parseName } from "./format.js";
import { empty, grid, paged, sentence } from "./list.js";
import { linkTo } from "./routes.js";

/** @typedef {import("./main.js").PageContext} PageContext */

const pageSize = 100;

/** Roles, and the API keys of the catalog. @param {PageContext} context */
export function accessPage(context) {
  const { caller, tab } = context;
  message.textContent = "";
  const managesKeys = may(caller, "admin", []);
  const showsKeys = managesKeys && tab === "keys";
  const content = h(
    "div",
    { class: "page" },
    h("div", { class: "heading" }, h("h1", { tabindex: "-1" }, "Access")),
    managesKeys &&
      h(
        "nav",
        { class: "tabs", "aria-label": "Parts of access" },
        h("a", { href: linkTo("access", [], "grants"), "aria-current": !showsKeys && "page" }, "Roles"),
        h("a", { href: linkTo("access", [], "keys"), "aria-current": showsKeys && "page" }, "API keys"),
      ),
    showsKeys ? keys(context) : grants(context),
  );
  return { title: showsKeys ? "API keys" : "Access", content };
}

/** @param {string} title @param {readonly HTMLElement[]} fields @param {string} action @param {(text: (name: string) => string) => Promise<void>} submit */
function formOf(title, fields, action, submit) {
  const error = h("p", { class: "field-error", role: "alert" });
  const button = h("button", { type: "submit", class: "primary" }, action);
  const form = h("form", { class: "card inline", onsubmit: onSubmit, "aria-label": title }, fields, button, error);
  /** @param {SubmitEvent} event */
  async function onSubmit(event) {
    event.preventDefault();
    const data = new FormData(form);
    // A button loses the focus when it is disabled.
    const hadFocus = button === document.activeElement;
    button.disabled = true;
    error.textContent = "";
    try {
      await submit((name) => String(data.get(name) ?? "").trim());
    } catch (problem) {
      error.textContent = sentence(/** @type {Error} */ (problem).message);
    }
    button.disabled = false;
    if (hadFocus) button.focus();
  }
  return form;
}

const principalInput = () =>
  h("input", {
    name: "principal",
    required: true,
    maxlength: "256",
    autocomplete: "off",
    spellcheck: "false",
    list: "principals",
  });

/** @param {boolean} mayBeNone */
const roleSelect = (mayBeNone) =>
  h(
    "select",
    { name: "role" },
    mayBeNone && h("option", { value: "" }, "none"),
    grantableRoles.map((role) => h("option", { value: role }, role)),
  );

/** The principals that are known, for the fields that want one. @param {PageContext} context */
function principalsFor({ caller, signal }) {
  const list = h("datalist", { id: "principals" });
  if (may(caller, "admin", []))
    api.listPrincipals({ limit: 1000, signal }).then(
      ({ principals }) => list.append(...principals.map(({ principal }) => h("option", { value: principal }))),
      () => {},
    );
  return list;
}

/** A list that can be loaded again in its place. @param {() => HTMLElement} make */
function reloadable(make) {
  let shown = make();
  const frame = h("div", {}, shown);
  return {
    frame,
    reload() {
      shown = make();
      frame.replaceChildren(shown);
    },
  };
}

/** @param {PageContext} context */
function grants(context) {
  const { caller, signal } = context;
  const entries = entriesOf(caller, "admin");
  const { frame, reload } = reloadable(() =>
    h(
      "div",
      {},
      entries.map((entry) => grantsOn(entry)),
    ),
  );

  /** @param {import("./format.js").Identifier} entry */
  function grantsOn(entry) {
    const body = h("tbody");
    return paged({
      signal,
      load: async (page_token) => {
        const { grants: items, page_token: next } = await api.listGrants(entry, {
          page_token,
          limit: pageSize,
          signal,
        });
        return { items, next };
      },
      frame: grid(["Principal", "Role", "Namespace", ""], body),
      into: body,
      row: ({ principal, namespace, role }) =>
        h(
          "tr",
          {},
          h("td", { "data-label": "Principal", class: "mono" }, principal),
          h("td", { "data-label": "Role" }, h("span", { class: "badge" }, role)),
          h(
            "td",
            { "data-label": "Namespace", class: "mono" },
            namespace.length === 0 ? h("em", {}, nameOf(namespace)) : nameOf(namespace),
          ),
          h(
            "td",
            { class: "action" },
            h(
              "button",
              {
                type: "button",
                class: "quiet",
                "aria-label": `Revoke the role of ${principal} on ${nameOf(namespace)}`,
                onclick: () => revoke(principal, namespace),
              },
              "Revoke",
            ),
          ),
        ),
      empty: () => empty(h("p", {}, "No role is granted here.")),
      more: "Show more roles",
    });
  }

  /** @param {string} principal @param {import("./format.js").Identifier} namespace */
  async function revoke(principal, namespace) {
    const isSure = await confirm({
      title: "Revoke this role?",
      text: [
        h("strong", {}, principal),
        " can do nothing more on ",
        h("strong", {}, nameOf(namespace)),
        " from the next request on, unless another role says otherwise.",
      ],
      action: "Revoke the role",
    });
    if (!isSure) return;
    await report(api.revokeGrant(namespace, principal), `${principal} has no role on ${nameOf(namespace)} any more.`);
    reload();
  }

  const form = formOf(
    "Give a role",
    [
      field("Principal", principalInput()),
      field("Role", roleSelect(false)),
      field(
        "Namespace",
        h("input", {
          name: "namespace",
          placeholder: nameOf(entries[0] ?? []),
          autocomplete: "off",
          spellcheck: "false",
        }),
      ),
    ],
    "Give the role",
    async (text) => {
      const namespace = text("namespace") === "" ? (entries[0] ?? []) : parseName(text("namespace"));
      await api.putGrant(namespace, text("principal"), text("role"));
      announce(`${text("principal")} is ${text("role")} of ${nameOf(namespace)}.`);
      reload();
    },
  );
  return h("div", {}, principalsFor(context), form, message, frame);
}

/** Says how what was asked for ended. */
const message = h("p", { class: "message", role: "status" });

/** @param {Promise<unknown>} asked @param {string} done */
async function report(asked, done) {
  try {
    await asked;
    message.className = "message";
    message.textContent = done;
  } catch (error) {
    message.className = "message field-error";
    message.textContent = sentence(/** @type {Error} */ (error).message);
  }
}

/** @param {PageContext} context */
function keys(context) {
  const { signal } = context;
  const { frame, reload } = reloadable(list);

  function list() {
    const body = h("tbody");
    return paged({
      signal,
      load: async (page_token) => {
        const { api_keys: items, page_token: next } = await api.listApiKeys({ page_token, limit: pageSize, signal });
        return { items, next };
      },
      frame: grid(["Principal", "Key", "Made", ""], body),
      into: body,
      row: ({ api_key_id: id, principal, created_at_millis: at }) =>
        h(
          "tr",
          {},
          h("td", { "data-label": "Principal", class: "mono" }, principal),
          h("td", { "data-label": "Key", class: "mono" }, id),
          h("td", { "data-label": "Made" }, dateAndTime(at)),
          h(
            "td",
            { class: "action" },
            h(
              "button",
              {
                type: "button",
                class: "quiet",
                "aria-label": `Revoke the key ${id} of ${principal}`,
                onclick: () => revoke(id, principal),
              },
              "Revoke",
            ),
          ),
        ),
      empty: () => empty(h("p", {}, "No keys.")),
      more: "Show more keys",
    });
  }

  /** @param {string} id @param {string} principal */
  async function revoke(id, principal) {
    const isSure = await confirm({
      title: "Revoke this key?",
      text: [
        "Calls with the key ",
        h("code", {}, id),
        " of ",
        h("strong", {}, principal),
        " are refused from the next request on. This cannot be undone.",
      ],
      action: "Revoke the key",
    });
    if (!isSure) return;
    await report(api.revokeApiKey(id), `The key ${id} is revoked.`);
    reload();
  }

  const form = formOf(
    "Make an API key",
    [
      field("Principal", principalInput()),
      field("Also give the role", roleSelect(true)),
      field(
        "On the namespace",
        h("input", { name: "namespace", placeholder: "the whole catalog", autocomplete: "off", spellcheck: "false" }),
      ),
    ],
    "Make a key",
    async (text) => {
      const role = text("role");
      const grant = role === "" ? undefined : { namespace: parseName(text("namespace")), role };
      const made = await api.createApiKey({ principal: text("principal"), grant });
      reload();
      await showKey(made.principal, made.key);
    },
  );
  return h("div", {}, principalsFor(context), form, message, frame);
}

/** Shows a key the one time that it is known. @param {string} principal @param {string} key @returns {Promise<void>} */
function showKey(principal, key) {
  return new Promise((resolve) => {
    const dialog = h(
      "dialog",
      { "aria-labelledby": "dialog-title", onclose: close },
      h(
        "form",
        { method: "dialog" },
        h("h2", { id: "dialog-title" }, `The new key of ${principal}`),
        h("p", {}, "Copy it now. The catalog keeps only a hash of it, and cannot show it again."),
        h("p", { class: "secret" }, h("code", {}, key), copyButton(key, "key")),
        h("div", { class: "actions" }, h("button", { class: "primary" }, "Done")),
      ),
    );
    function close() {
      dialog.remove();
      resolve();
    }
    document.body.append(dialog);
    dialog.showModal();
  });
}
