/** An auditor's files from a running service: by curl, by the SDK and by the command line. */
import { createHash } from "node:crypto";
import { expect } from "chai";
import { createClient, exportedRows, exportedText } from "../../client";
import { connect } from "../support/chain";
import { testCli } from "../support/cli";
import { NO_PERMISSIONS, codeOf } from "../support/http";
import { useApiAccount, useStack } from "../support/stack";

const CODE = `async function main({ name }) { return { hello: name }; }`;
type Row = Record<string, unknown>;

describe("the export of an account's history", function () {
  this.timeout(90_000);
  const stack = useStack();
  const account = useApiAccount();
  const cli = testCli();
  after(() => cli.remove());
  const receipts: string[] = [];

  before(async () => {
    await account().api.must("/add_group", {
      group_name: "any",
      group_description: "",
      cid_hashes_permitted: [`0x${"00".repeat(32)}`],
    });
    for (let at = 0; at < 3; at++)
      receipts.push(String((await account().api.must("/run_action", { code: CODE, receipt: true }))["receipt"]));
  });

  const exported = async (query: string): Promise<Row[]> => {
    const { status, text } = await account().api.get(`/export?${query}`);
    expect(status, text).to.equal(200);
    return text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Row);
  };

  it("has the hash of each run's receipt, newest first", async () => {
    const hashes = receipts.map((receipt) => createHash("sha256").update(receipt).digest("hex")).reverse();
    expect((await exported("kind=runs")).map((row) => row["receipt_sha256"])).to.deep.equal(hashes);
  });

  it("has each write with its transaction, which is on the chain", async () => {
    const writes = await exported("kind=writes");
    expect(writes.map(({ kind }) => kind)).to.include.members(["add_group", "new_account"]);
    const provider = connect(stack().rpcUrl);
    try {
      for (const { transaction_hash: hash, block_number: block } of writes)
        expect((await provider.getTransactionReceipt(String(hash)))?.blockNumber).to.equal(block);
    } finally {
      provider.destroy();
    }
    const [first, ...older] = writes;
    expect(await exported(`kind=writes&cursor=${String(first?.["cursor"])}`)).to.deep.equal(older);
  });

  it("has the ledger, whose sum is the balance", async () => {
    const postings = await exported("kind=postings");
    const { balance_cents } = (await account().api.get("/billing/balance")).body as Row;
    expect(postings.reduce((sum, row) => sum + Number(row["amount_cents"]), 0)).to.equal(balance_cents);
  });

  it("is for owners only, and names what is wrong with a question", async () => {
    const key = await account().api.must("/add_usage_api_key", NO_PERMISSIONS);
    const other = account().api.with(String(key["usage_api_key"]));
    expect((await other.get("/export?kind=runs")).status).to.equal(403);
    expect((await account().api.with(undefined).get("/export?kind=runs")).status).to.equal(401);
    for (const query of ["", "kind=keys", "kind=runs&cursor=x", "kind=runs&limit=0", "kind=runs&format=xml"])
      expect((await account().api.get(`/export?${query}`)).status, query).to.be.oneOf([400, 422]);
    expect(codeOf(await account().api.get("/export?kind=runs&cursor=x"))).to.equal("invalid_value");
  });

  it("comes whole by the SDK and the command line, as rows or as one CSV", async () => {
    const client = createClient({ baseUrl: stack().baseUrl, apiKey: String(account().api.key) });
    const rows: Row[] = [];
    for await (const row of exportedRows(client, "postings")) rows.push(row);
    expect(rows).to.deep.equal(await exported("kind=postings"));

    let csv = "";
    for await (const text of exportedText(client, "postings", { format: "csv" })) csv += text;
    expect(csv.trimEnd().split("\r\n")).to.have.length(rows.length + 1);
    const more = await account().api.get("/export?kind=postings&format=csv");
    expect([more.text, String(more.headers["content-type"])]).to.deep.equal([csv, "text/csv; charset=utf-8"]);

    cli.env["KEYWRIGHT_API_KEY"] = String(account().api.key);
    const url = `--url ${stack().baseUrl}`;
    expect((await cli.ok(`${url} export postings --format csv`)).out).to.equal(csv);
    const cursor = String(rows[1]?.["cursor"]);
    const resumed = (await cli.ok(`${url} export postings --cursor ${cursor}`)).out.trimEnd().split("\n");
    expect(resumed.map((line) => JSON.parse(line) as Row)).to.deep.equal(rows.slice(2));
    expect((await cli.run(`${url} export keys`)).code).to.equal(2);
  });
});
