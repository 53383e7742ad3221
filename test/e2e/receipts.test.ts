/** A receipt on its whole way: from the answer of a run to a stranger who checks it offline with the command line. */
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { testCli } from "../support/cli";
import { NO_PERMISSIONS, members, type HttpAnswer } from "../support/http";
import { useApiAccount, useStack } from "../support/stack";

const CODE = `async function main({ name }) { return { hello: name }; }`;
const claimsOf = (receipt: string): unknown =>
  JSON.parse(Buffer.from(receipt.split(".")[1] ?? "", "base64url").toString());

describe("the receipt of a run in the API", function () {
  this.timeout(60_000);
  const stack = useStack();
  const account = useApiAccount();
  const cli = testCli();
  after(() => cli.remove());

  const post = (body: object, api = account().api): Promise<HttpAnswer> => api.post("/run_action", body);
  const file = (name: string, content: string): string => {
    writeFileSync(join(cli.cwd, name), content);
    return name;
  };

  before(() =>
    account().api.must("/add_group", {
      group_name: "any",
      group_description: "",
      cid_hashes_permitted: [`0x${"00".repeat(32)}`],
    }),
  );

  it("is in the header, in the body when asked for, and in the run's record by its hash", async () => {
    const plain = await post({ code: CODE, js_params: { name: "x" } });
    expect(members(plain)).not.to.have.property("receipt");
    expect(plain.headers["keywright-receipt"]).to.match(/^[\w-]+\.[\w-]+\.[\w-]{86}$/);
    const asked = await post({ code: CODE, js_params: { name: "x" }, receipt: true });
    const receipt = String(asked.headers["keywright-receipt"]);
    const { usage, ...answer } = members(asked);
    expect(answer["receipt"]).to.equal(receipt);
    const { cost_cents, duration_ms } = usage as Record<string, unknown>;
    expect(claimsOf(receipt)).to.include({
      request_id: asked.headers["x-request-id"],
      price_cents: cost_cents,
      duration_ms,
    });
    const [newest] = (await account().api.get("/list_runs")).body as Record<string, unknown>[];
    expect(newest?.["receipt_sha256"]).to.equal(createHash("sha256").update(receipt).digest("hex"));
  });

  it("comes with a refusal by the contract, and with no other refusal", async () => {
    const key = await account().api.must("/add_usage_api_key", NO_PERMISSIONS);
    const refused = await post({ code: CODE }, account().api.with(String(key["usage_api_key"])));
    expect(refused.status).to.equal(403);
    const { receipt, code } = members(refused);
    expect(receipt).to.equal(refused.headers["keywright-receipt"]);
    expect(claimsOf(String(receipt))).to.include({ outcome: code, price_cents: 0 });
    const checked = await cli.run(
      `--url ${stack().baseUrl} --json receipt ${file("refused.json", JSON.stringify(members(refused)))}`,
    );
    expect([checked.code, checked.json()["wrong"]]).to.deep.equal([2, undefined]);
    const wrong = await post({ code: CODE, timeout_ms: 0 });
    expect([wrong.status, wrong.headers["keywright-receipt"]]).to.deep.equal([400, undefined]);
  });

  it("is checked by the command line, offline with kept evidence, down to the quote", async () => {
    const params = { name: "auditor" };
    const { text: answer } = await post({ code: CODE, js_params: params, receipt: true });
    const answered = file("answer.json", answer);
    const { receipt } = JSON.parse(answer) as { receipt: string };
    const saved = await cli.run(`--url ${stack().baseUrl} verify --save evidence.json`);
    expect(saved.code, saved.out + saved.err).to.equal(2);

    const offline = `--url http://127.0.0.1:1 --json receipt`;
    const quote = "--quote evidence.json";
    const checked = await cli.run(`${offline} ${answered} ${quote} --params ${file("p.json", JSON.stringify(params))}`);
    expect(checked.code, checked.out + checked.err).to.equal(2);
    expect(checked.json()).to.have.nested.property("claims.outcome", "succeeded");
    expect(checked.json()).to.have.nested.property("report.outcome", "simulated");

    const forged = file("forged.json", answer.replace("auditor", "nobody"));
    const other = file("other.txt", `${receipt.slice(0, -4)}AAAA`);
    for (const line of [`${forged} ${quote}`, `${other} ${quote}`, `${answered} ${quote} --params ${forged}`]) {
      const result = await cli.run(`${offline} ${line}`);
      expect([result.code, result.json()["claims"]], line).to.deep.equal([1, undefined]);
    }
    // Whatever the receipt states of the answer is compared, also when it is missing.
    for (const [from, to] of [
      ['"response"', '"responsd"'],
      ['"has_error":false', '"has_error":true'],
      ['"has_error":false', '"error":{"code":"action_error"},"has_error":false'],
      ['"has_error":false', '"code":"no_permission","has_error":false'],
      ['"has_error":false', '"code":"already_ran","has_error":true'],
      ['"cost_cents":1', '"cost_cents":2'],
      [`"duration_ms":`, `"duration_ms":1`],
    ] as const) {
      expect(answer).to.contain(from);
      const result = await cli.run(`${offline} ${file("changed.json", answer.replace(from, to))} ${quote}`);
      expect([result.code, String(result.json()["wrong"])], from).to.satisfy(
        ([code, wrong]: [number, string]) => code === 1 && wrong.endsWith("given is not the one of the receipt"),
      );
    }
    // Nothing is hidden behind the code of a refusal.
    const refusal = answer.replace("auditor", "nobody").replace('"has_error"', '"code":"already_ran","has_error"');
    expect((await cli.run(`${offline} ${file("refusal.json", refusal)} ${quote}`)).code).to.equal(1);
    const evidence = JSON.parse(readFileSync(join(cli.cwd, "evidence.json"), "utf8")) as {
      nonce: string;
    };
    file("stale.json", JSON.stringify({ ...evidence, nonce: "00".repeat(32) }));
    const stale = await cli.run(`${offline} ${answered} --quote stale.json`);
    expect([stale.code, String(stale.json()["wrong"])]).to.deep.equal([
      1,
      "no genuine quote covers a config document to check the receipt with",
    ]);
    expect((await cli.run(`${offline} ${answered} --quote ${answered}`)).code).to.equal(4);
  });

  it("is checked beside what a trigger's firing says of its run", async () => {
    const { api } = account();
    const { id } = await api.must("/triggers", { name: "t", code: CODE, params: { name: "x" }, hook: {} });
    const { text } = await api.post(`/triggers/${String(id)}/run`, {});
    const check = async (name: string, content: string): Promise<number> =>
      (await cli.run(`--url ${stack().baseUrl} --json receipt ${file(name, content)}`)).code;
    expect(await check("firing.json", text), text).to.equal(2);
    for (const [from, to] of [
      ['"outcome":"succeeded"', '"outcome":"threw"'],
      ['"cost_cents":1', '"cost_cents":2'],
      [`"trigger_id":"${String(id)}"`, '"trigger_id":"another"'],
    ] as const) {
      expect(text).to.contain(from);
      expect(await check("changed.json", text.replace(from, to)), from).to.equal(1);
    }
  });

  it("is checked online when no evidence is given", async () => {
    const response = await post({ code: CODE, receipt: true });
    const receipt = file("receipt.txt", `${String(response.headers["keywright-receipt"])}\n`);
    const { code, out } = await cli.run(`--url ${stack().baseUrl} receipt ${receipt}`);
    expect([code, /RECEIPT: signed by the statement key/.test(out)], out).to.deep.equal([2, true]);
  });
});
