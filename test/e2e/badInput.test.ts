/**
 * Invalid requests on every route of the main flow: a problem body that names what to fix, never a 500, and nothing
 * written.
 */
import { expect } from "chai";
import { randomBytes } from "node:crypto";
import { keccak256, toUtf8Bytes } from "ethers";
import { makeAccount, type TestAccount } from "../support/journey";
import { useStack } from "../support/stack";

interface Problem {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
}

const WRITES: Record<string, Record<string, unknown>> = {
  "/create_wallet": { name: "n" },
  "/add_group": { group_name: "g", group_description: "", pkp_ids_permitted: [], cid_hashes_permitted: [] },
  "/add_action": { action_ipfs_cid: "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX", name: "n", description: "" },
  "/add_action_to_group": { group_id: 1, action_ipfs_cid: "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX" },
  "/add_pkp_to_group": { group_id: 1, pkp_id: 1 },
  "/remove_usage_api_key": { usage_api_key: `0x${"b2".repeat(32)}` },
  "/run_action": { code: "1" },
};

describe("bad input", () => {
  const stack = useStack();
  let account: TestAccount;
  let before_: unknown;

  const look = async () => [await account.client.account(), await account.client.balance()];
  before(async () => {
    account = await makeAccount(stack().baseUrl);
    before_ = await look();
  });
  after(async () => {
    if (before_ !== undefined) expect(await look(), "something was written or charged").to.deep.equal(before_);
  });

  async function send(
    path: string,
    body: string,
    headers: Record<string, string> = { "x-api-key": account.apiKey },
  ): Promise<Problem> {
    const response = await fetch(`${stack().baseUrl}/core/v1${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body,
    });
    expect(response.headers.get("content-type"), `${path} ${body.slice(0, 80)}`).to.match(
      /^application\/problem\+json/,
    );
    expect(response.headers.get("x-request-id")).to.match(/^[0-9a-f-]{36}$/);
    const problem = (await response.json()) as Problem;
    expect(problem.status).to.equal(response.status);
    expect(problem.detail).to.be.a("string").and.not.equal("");
    return problem;
  }
  const short = ({ status, code }: Problem): string => `${status} ${code}`;

  it("that is not JSON is 400 on every route", async () => {
    for (const path of Object.keys(WRITES))
      for (const body of ["{", "", "{'a':1}", '{"a":1}}', "\u0000"])
        if (body !== "") expect(short(await send(path, body)), path).to.equal("400 malformed_json");
  });

  it("that is JSON of the wrong shape is 422 on every route, and the field is named", async () => {
    for (const [path, good] of Object.entries(WRITES)) {
      for (const body of ["[]", '"text"', "1", "null"])
        expect(short(await send(path, body)), `${path} ${body}`).to.equal("422 invalid_body");
      const unknown = await send(path, JSON.stringify({ ...good, colour: "red" }));
      expect(short(unknown), path).to.equal("422 invalid_body");
      expect(JSON.stringify(unknown)).to.include("colour");
      for (const [field, value] of Object.entries(good)) {
        const wrong = await send(path, JSON.stringify({ ...good, [field]: typeof value === "object" ? 7 : { a: 1 } }));
        expect(short(wrong), `${path} ${field}`).to.equal("422 invalid_body");
        expect(JSON.stringify(wrong)).to.include(field);
      }
    }
  });

  it("of the right type with an impossible value is 400 or 404", async () => {
    const good = WRITES["/add_action_to_group"];
    for (const group_id of ["", "x", "0x", "-1", -1, "1e3", "18446744073709551616", 2 ** 53]) {
      expect(
        short(await send("/add_action_to_group", JSON.stringify({ ...good, group_id }))),
        String(group_id),
      ).to.equal("400 invalid_value");
    }
    for (const group_id of [0, "0", "0x0"])
      expect(short(await send("/add_action_to_group", JSON.stringify({ ...good, group_id })))).to.equal(
        "400 group_zero",
      );
    for (const group_id of [1, "0xffffffffffffffff"])
      expect(short(await send("/add_action_to_group", JSON.stringify({ ...good, group_id })))).to.equal(
        "404 unknown_group",
      );
    for (const action_ipfs_cid of [
      "",
      "Qm",
      "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaZ0",
      `0x${"a1".repeat(32)}`,
      "bafkreifzjut3te7nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e",
    ]) {
      expect(
        short(await send("/add_action_to_group", JSON.stringify({ ...good, action_ipfs_cid }))),
        action_ipfs_cid,
      ).to.equal("400 invalid_cid");
    }
    for (const pkp_id of ["0x12", "0x" + "g".repeat(40), "", 0]) {
      const { status } = await send("/add_pkp_to_group", JSON.stringify({ group_id: 1, pkp_id }));
      expect(status, String(pkp_id)).to.be.oneOf([400, 404]);
    }
    expect(
      short(await send("/add_group", JSON.stringify({ ...WRITES["/add_group"], group_name: "é".repeat(65) }))),
    ).to.equal("400 string_too_long");
  });

  it("in place of a key is 401", async () => {
    const secret = Buffer.from(account.apiKey, "base64");
    const posing = [
      "",
      "key",
      account.accountId,
      keccak256(toUtf8Bytes(account.apiKey)),
      secret.toString("hex"),
      secret.toString("base64url"),
      account.apiKey.slice(0, 43),
      ` ${account.apiKey.slice(1)}`,
      Buffer.alloc(32).toString("base64"),
      Buffer.alloc(32, 0xff).toString("base64"),
      Buffer.from(account.wallet.slice(2), "hex").toString("base64"),
      randomBytes(32).toString("base64"),
    ];
    for (const key of posing) {
      for (const headers of [{ "x-api-key": key }, { authorization: `Bearer ${key}` }] as Record<string, string>[]) {
        for (const path of ["/add_group", "/run_action", "/create_wallet"])
          expect((await send(path, JSON.stringify(WRITES[path]), headers)).status, key).to.equal(401);
      }
    }
    expect(short(await send("/add_group", "{", {}))).to.equal("401 missing_credential");
    const both = { "x-api-key": account.apiKey, authorization: `Bearer ${randomBytes(32).toString("base64")}` };
    expect(short(await send("/add_group", JSON.stringify(WRITES["/add_group"]), both))).to.equal(
      "400 conflicting_credentials",
    );
  });

  it("on an unknown route or method is 404 or 405", async () => {
    const { baseUrl } = stack();
    const cases: [string, string, number][] = [
      ["GET", "/core/v1/nothing", 404],
      ["POST", "/core/v1/list_groups/../x", 404],
      ["DELETE", "/core/v1/add_group", 405],
      ["GET", "/core/v1/add_group", 405],
      ["POST", "/core/v1/list_groups", 405],
      ["HEAD", "/core/v1/create_wallet", 405],
      ["PUT", "/core/v1/run_action", 405],
    ];
    for (const [method, path, status] of cases) {
      const response = await fetch(baseUrl + path, { method, headers: { "x-api-key": account.apiKey } });
      expect(response.status, `${method} ${path}`).to.equal(status);
      if (status === 405) expect(response.headers.get("allow"), `${method} ${path}`).to.match(/^[A-Z, ]+$/);
    }
  });

  it("that is too large or of another type is 413 or 415", async () => {
    const large = JSON.stringify({ ...WRITES["/add_group"], group_description: "x".repeat(1024 * 1024) });
    expect(short(await send("/add_group", large))).to.equal("413 payload_too_large");
    const typed = await send("/add_group", JSON.stringify(WRITES["/add_group"]), {
      "x-api-key": account.apiKey,
      "content-type": "text/plain",
    });
    expect(short(typed)).to.equal("415 unsupported_media_type");
  });

  it("in a query is 400", async () => {
    const { baseUrl } = stack();
    for (const query of ["page_size=0", "page_size=1001", "page_number=-1", "page_number=x", "page_size=1.5"]) {
      const response = await fetch(`${baseUrl}/core/v1/list_groups?${query}`, {
        headers: { "x-api-key": account.apiKey },
      });
      expect(response.status, query).to.equal(400);
    }
    expect(
      await (
        await fetch(`${baseUrl}/core/v1/list_groups?page_number=12345678901`, {
          headers: { "x-api-key": account.apiKey },
        })
      ).json(),
    ).to.deep.equal([]);
  });
});
