import { ErrorResponse } from "@tiltyard/protocol";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createGateway, type TableView } from "../../service/rows/gateway.ts";

const gateway = createGateway();
beforeAll(() => gateway.listen());
afterAll(() => gateway[Symbol.asyncDispose]());

/** Returns a view of a table at a location that counts its calls. */
function viewOf(location: string): TableView & { asked: number } {
  const describe = async () => {
    view.asked += 1;
    return { location, properties: {}, managed_versioning: true };
  };
  const refuse = () => Promise.reject(new Error("not asked here"));
  const view = {
    asked: 0,
    declareTable: describe,
    describeTable: describe,
    listTableVersions: refuse,
    describeTableVersion: refuse,
    createTableVersion: refuse,
    hold: () => undefined,
  };
  return view;
}

function describeTable(uri: string, headers: Record<string, string>): Promise<Response> {
  return fetch(`${uri}/v1/table/view$table/describe`, { method: "POST", headers });
}
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

test("the gateway shows a view to the holder of its token alone", async () => {
  const [mine, theirs] = [viewOf("file:///mine"), viewOf("file:///theirs")];
  const [served, other] = [gateway.serve(mine), gateway.serve(theirs)];
  expect(await (await describeTable(served.uri, bearer(served.token))).json()).toMatchObject({
    location: "file:///mine",
  });
  expect(await (await describeTable(served.uri, bearer(other.token))).json()).toMatchObject({
    location: "file:///theirs",
  });
  for (const headers of [
    {},
    bearer("wrong"),
    bearer(""),
    bearer(`${served.token}x`),
    { "x-api-key": served.token },
    { authorization: served.token },
  ]) {
    const refused = await describeTable(served.uri, headers);
    expect([refused.status, ErrorResponse.strict().parse(await refused.json()).code]).toEqual([401, 16]);
  }
  expect([mine.asked, theirs.asked]).toEqual([1, 1]);
  expect(served.failure).toBeUndefined();
});

test("the gateway closes no idle connection, on which the library may send a commit at that moment", async () => {
  const served = gateway.serve(viewOf("file:///mine"));
  // Node announces a timeout of idle connections with this header.
  expect((await describeTable(served.uri, bearer(served.token))).headers.get("keep-alive")).toBeNull();
});

test("the gateway forgets a view that is no longer served", async () => {
  const view = viewOf("file:///gone");
  const served = gateway.serve(view);
  served[Symbol.dispose]();
  expect((await describeTable(served.uri, bearer(served.token))).status).toBe(401);
  expect(view.asked).toBe(0);
});
