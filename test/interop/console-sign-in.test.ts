import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startTestCatalog, type TestCatalog } from "../support/catalog.ts";
import { type IdentityProvider, startIdentityProvider } from "./identity-provider.ts";
import { required } from "./servers.ts";

let browser: Browser;
let issuer: IdentityProvider;
let catalog: TestCatalog;
let context: BrowserContext;
let page: Page;
beforeAll(async () => {
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  browser = await chromium.launch({ executablePath: required("TILTYARD_TEST_CHROMIUM"), args });
  issuer = await startIdentityProvider();
  catalog = await startTestCatalog(issuer.settings);
  issuer.serve(`${catalog.url}/console`);
  expect((await catalog.call("putGrant", { principal: "oidc:ada", namespace: [], role: "admin" })).status).toBe(200);
});
afterAll(async () => {
  await browser.close();
  await catalog.stop();
  issuer.stop();
});
beforeEach(async () => {
  issuer.tokenSeconds = 3_600;
  context = await browser.newContext();
  page = await context.newPage();
});
afterEach(() => context.close());

const heading = (shown: Page, name: string) => shown.getByRole("heading", { level: 1, name });
const leaveButton = (shown: Page) => shown.getByRole("button", { name: `Sign in with ${issuer.host}` });
/** Everything that the scripts of a page can read. */
const readable = (shown: Page) =>
  shown.evaluate("JSON.stringify([localStorage, sessionStorage, document.cookie, location.href])");

/** Signs in as `ada` on the pages of the issuer. */
async function signIn(): Promise<void> {
  await leaveButton(page).click();
  await page.locator("[name=login]").fill("ada");
  await page.locator("[name=password]").fill("any");
  await page.getByRole("button", { name: "Sign-in" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
}

describe("a sign-in through an OIDC issuer", () => {
  test("returns to the page, is shared by all tabs, and ends in all of them without a token left", async () => {
    await page.goto(`${catalog.url}/console#/access?show=keys`);
    await signIn();
    await heading(page, "Access").waitFor();
    expect(page.url()).toBe(`${catalog.url}/console#/access?show=keys`);
    await page.getByText("oidc:ada", { exact: true }).first().waitFor();
    expect(await page.evaluate("JSON.stringify([localStorage, document.cookie])")).not.toMatch(/ey[\w-]{20}/);
    await page.reload();
    await heading(page, "Access").waitFor();

    const other = await context.newPage();
    await other.goto(`${catalog.url}/console#/jobs`);
    await heading(other, "Jobs").waitFor();

    await page.getByRole("button", { name: "Sign out" }).click();
    await other.getByText("You signed out in another tab.").waitFor();
    await page.getByRole("button", { name: "Yes, sign me out" }).click();
    await leaveButton(page).waitFor();
    for (const tab of [page, other]) expect(await readable(tab)).not.toMatch(/ey[\w-]{20}|token/);
    await other.reload();
    await leaveButton(other).waitFor();
  });

  test("is renewed without a question before its token expires", async () => {
    const renewals: string[] = [];
    page.on("request", (request) => {
      if (request.postData()?.includes("grant_type=refresh_token")) renewals.push(request.url());
    });
    issuer.tokenSeconds = 20;
    await page.goto(`${catalog.url}/console#/access`);
    await leaveButton(page).waitFor();
    const isDone = page.waitForResponse((response) => response.url().endsWith("/token"));
    await signIn();
    await isDone;
    await heading(page, "Access").waitFor();
    await expect.poll(() => renewals.length).toBeGreaterThan(0);
    issuer.tokenSeconds = 3_600;
    await page.getByRole("link", { name: "Jobs" }).click();
    await heading(page, "Jobs").waitFor();
    const now = Date.now() / 1_000;
    const expiry = "Math.max(0, ...Object.values(sessionStorage).map((text) => JSON.parse(text).expires_at ?? 0))";
    await expect.poll(() => page.evaluate(expiry)).toBeGreaterThan(now + 3_000);
    const count = renewals.length;
    await page.getByRole("link", { name: "Transactions" }).click();
    await heading(page, "Transactions").waitFor();
    expect(renewals.length).toBe(count);
  });

  test("is offered again on the same page after its end", async () => {
    issuer.tokenSeconds = 20;
    await page.goto(`${catalog.url}/console#/access`);
    await signIn();
    await heading(page, "Access").waitFor();
    await issuer.revokeAll();
    // The page may notice the end by itself at any time, so the user follows a bookmark, which needs nothing of the page.
    await page.goto(`${catalog.url}/console#/jobs`);
    await page.getByText("no longer accepted. Sign in again.").waitFor();
    expect(page.url()).toBe(`${catalog.url}/console#/jobs`);
    // The issuer remembers the user.
    await leaveButton(page).click();
    await heading(page, "Jobs").waitFor();
    expect(page.url()).toBe(`${catalog.url}/console#/jobs`);
  });

  test("is an alternative to keys, and the page may call only the catalog and the issuer", async () => {
    const response = await page.goto(`${catalog.url}/console`);
    const policy = (await response?.headerValue("content-security-policy")) ?? "";
    expect(policy).toContain(`connect-src 'self' http://${issuer.host};`);
    await page.locator("#secret").fill(catalog.adminKey);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await heading(page, "Catalog").waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await leaveButton(page).waitFor();
    expect(page.url()).toBe(`${catalog.url}/console`);
  });

  test("leaves keys as an alternative when its part of the page fails to load", async () => {
    await context.route("**/issuer.js", (route) => route.abort());
    await page.goto(`${catalog.url}/console`);
    await page.getByRole("alert").filter({ hasText: "The sign-in failed:" }).waitFor();
    await page.locator("#secret").fill(catalog.adminKey);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await heading(page, "Catalog").waitFor();
  });

  test("is explained when the issuer refuses it or does not respond", async () => {
    await page.goto(`${catalog.url}/console#/jobs`);
    await leaveButton(page).click();
    await page.getByRole("link", { name: "[ Cancel ]" }).click();
    await page.getByRole("alert").filter({ hasText: "The sign-in failed:" }).waitFor();
    expect(page.url()).toBe(`${catalog.url}/console#/jobs`);
    await context.route("**/.well-known/**", (route) => route.abort());
    await page.reload();
    await leaveButton(page).click();
    await page.getByRole("alert").filter({ hasText: "does not respond" }).waitFor();
  });
});
