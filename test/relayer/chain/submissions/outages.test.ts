/** Endpoints hang, are unreachable or answer with errors during writes: each write takes effect once or not at all. */
import type { ServerResponse } from "node:http";
import { expect } from "chai";
import { KeywrightError } from "../../../../protocol/errors";
import type { AccountId } from "../../../../protocol/ids";
import { parseSubmissionId } from "../../../../relayer/chain";
import type { Chain } from "../../../../relayer/chain/types";
import { expectAtRest } from "../../../support/batches";
import { addGroup, ChainBed, eventually, freshAccountId, IMPATIENT, newAccount } from "../../../support/chainBed";
import { refusal } from "../../../support/refusal";
import { swallow } from "../../../support/rpcProxy";

describe("outages of the endpoint", function () {
  this.timeout(60_000);
  let bed: ChainBed;
  let chain: Chain;
  let account: AccountId;

  before(async () => {
    bed = await ChainBed.start({ payers: 1 });
    ({ chain } = await bed.open({ tuning: IMPATIENT }));
    account = freshAccountId();
    await chain.submit(newAccount(account));
  });
  after(() => bed?.stop());
  /** Nothing is open, and the lane accepts another write at once. */
  afterEach(async () => {
    await expectAtRest(bed, chain);
    const before = await bed.groupCount(account);
    await chain.submit(addGroup(account, "well"));
    expect(await bed.groupCount(account)).to.equal(before + 1);
  });

  const reserve = async (): Promise<boolean> => true;
  const never = (): Promise<never> => Promise.reject(new Error("not forwarded"));

  it("A13: an endpoint that hangs gives 504 with the submission's id, and the write lands later", async () => {
    const before = await bed.groupCount(account);
    bed.proxy.inject((call) =>
      ["eth_getTransactionReceipt", "eth_blockNumber"].includes(call.method) && sent()
        ? swallow(call, never)
        : undefined,
    );
    const sent = (): boolean =>
      bed.proxy.seen.some(({ method, params }) => method === "eth_sendRawTransaction" && !known.has(params[0]));
    const known = new Set(
      bed.proxy.seen.filter(({ method }) => method === "eth_sendRawTransaction").map(({ params }) => params[0]),
    );
    const error = await refusal(chain.submit(addGroup(account, "late", { waitMs: 400, reserve })));
    expect([error.code, error.status]).to.deep.equal(["submission_pending", 504]);
    const id = parseSubmissionId(String(error.facts.submission_id)) as never;
    bed.proxy.heal();
    await eventually("the write landed", async () => (await chain.submission(id))?.state === "mined");
    expect((await chain.submission(id))?.result).to.have.property("group_id");
    expect(await bed.groupCount(account)).to.equal(before + 1);
  });

  it("A13: with the endpoint unreachable from the start a write fails in time, with nothing spent", async () => {
    bed.proxy.breakAll(() => undefined);
    const started = Date.now();
    const error = await refusal(chain.submit(addGroup(account, "dead", { reserve })));
    expect(error.code).to.equal("chain_unavailable");
    expect(Date.now() - started).to.be.lessThan(5_000);
  });

  it("a slow body that never ends counts as no answer", async () => {
    bed.proxy.breakAll((response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const drip = setInterval(() => response.write(" "), 50);
      response.on("close", () => clearInterval(drip));
    });
    expect((await refusal(chain.account(account))).code).to.equal("chain_unavailable");
  });

  for (const [name, how] of [
    ["500s", (response: ServerResponse) => response.writeHead(500).end("Internal Server Error")],
    ["403s", (response: ServerResponse) => response.writeHead(403).end("<html>Forbidden</html>")],
    ["rate limits", (response: ServerResponse) => response.writeHead(429).end("slow down")],
    ["nonsense", (response: ServerResponse) => response.writeHead(200).end("{]")],
  ] as const) {
    it(`an outage by ${name} during writes loses none and repeats none`, async () => {
      const ids = Array.from({ length: 6 }, freshAccountId);
      const writing = Promise.all(
        ids.map((id) => chain.submit(newAccount(id, { reserve })).catch((error: unknown) => error as KeywrightError)),
      );
      await new Promise((resolve) => setTimeout(resolve, 15));
      bed.proxy.breakAll(how);
      await new Promise((resolve) => setTimeout(resolve, 700));
      bed.proxy.heal();
      const answers = await writing;
      for (const [index, answer] of answers.entries()) {
        const there = (await chain.account(ids[index] as AccountId)) !== undefined;
        expect(there, JSON.stringify(answer)).to.equal(!(answer instanceof KeywrightError));
      }
    });
  }
});
