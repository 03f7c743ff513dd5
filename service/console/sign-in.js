import { ApiError, describeCaller, setCredential } from "./api.js";
import { h } from "./dom.js";
import { mark } from "./shell.js";

/**
 * @param {(caller: import("./caller.js").Caller) => void} onSignedIn
 * @param {string} [message] Why one has to sign in again.
 */
export function signInPage(onSignedIn, message) {
  const error = h("p", { class: "field-error", role: "alert", id: "sign-in-error" }, message);
  const secret = h("input", {
    id: "secret",
    type: "password",
    autocomplete: "off",
    spellcheck: "false",
    autocapitalize: "off",
    required: true,
    "aria-describedby": "sign-in-error sign-in-hint",
  });
  const label = h("label", { for: "secret" }, "API key");
  const kinds = /** @type {const} */ ([
    ["api-key", "API key"],
    ["token", "Token"],
  ]).map(([value, text], index) =>
    h(
      "label",
      { class: "choice" },
      h("input", {
        type: "radio",
        name: "kind",
        value,
        checked: index === 0,
        onchange: () => label.replaceChildren(text),
      }),
      h("span", {}, text),
    ),
  );
  const button = h("button", { type: "submit", class: "primary" }, "Sign in");
  const form = h(
    "form",
    { class: "card sign-in", onsubmit: submit, novalidate: true },
    h("div", { class: "brand" }, mark(), h("span", {}, "Tiltyard")),
    h("h1", { tabindex: "-1" }, "Sign in to the catalog"),
    h("fieldset", { class: "choices" }, h("legend", { class: "visually-hidden" }, "Sign in with"), kinds),
    h("div", { class: "field" }, label, secret, error),
    button,
    h(
      "p",
      { class: "hint", id: "sign-in-hint" },
      "It is kept until you sign out or close this tab, and in this tab only.",
    ),
  );

  /** @param {SubmitEvent} event */
  async function submit(event) {
    event.preventDefault();
    const value = secret.value.trim();
    if (value === "") return fail("Enter your API key, or a token of your issuer.");
    const kind = new FormData(form).get("kind") === "token" ? "token" : "api-key";
    button.disabled = true;
    setCredential({ kind, value });
    try {
      onSignedIn(await describeCaller());
    } catch (problem) {
      setCredential(undefined);
      const isRefused = problem instanceof ApiError && problem.status === 401;
      fail(
        isRefused
          ? `The catalog does not accept this: ${problem.message}.`
          : String(/** @type {Error} */ (problem).message),
      );
    } finally {
      button.disabled = false;
    }
  }

  /** @param {string} text */
  function fail(text) {
    error.textContent = text;
    secret.setAttribute("aria-invalid", "true");
    secret.focus();
  }

  return h("main", { class: "sign-in-page", id: "main" }, form);
}
