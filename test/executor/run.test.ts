/** What runs and what does not: the keyholder's decisions over a real chain, seen from outside the process. */
import { expect } from "chai";
import { keccak256, verifyMessage } from "ethers";
import { cidOfCode } from "../../protocol/cid";
import { actionHashOf } from "../../protocol/ids";
import { TestAccount, TestChain, TestExecutor, mined, registerPayers, type Outcome } from "../support/executor";
import { expectInTime, itInTime, TooLate } from "../support/inTime";

const SIGN = `async function main({ pkpId, message }) { return await Actions.signMessage({ pkpId, message }); }`;
const HELLO = `async function main() { return "hello"; }`;
const UNLISTED = `async function main() { return "in no group"; }`;
/** Keeps its core, and says when it ends. */
const SLOW = `async function main() { const end = Date.now() + 2500; while (Date.now() < end); return end; }`;
const PRIVATE_KEY = `async function main({ pkpId }) { return (await Actions.getPrivateKey({ pkpId })).length; }`;

const failure = ({ refusal, answer }: Outcome<"run">): string =>
  refusal !== undefined ? `${refusal.code}/${String(refusal.facts?.failed)}` : (answer?.error?.code ?? "allowed");
const response = ({ answer, refusal }: Outcome<"run">): unknown => {
  if (answer === undefined || answer.error !== undefined) throw new Error(JSON.stringify(refusal ?? answer?.error));
  return JSON.parse(answer.response);
};

describe("a run", function () {
  this.timeout(60_000);
  let chain: TestChain;
  let executor: TestExecutor;
  let account: TestAccount;
  let pkp: string;
  let otherPkp: string;

  before(async () => {
    chain = await TestChain.start();
    executor = await TestExecutor.start(chain);
    await registerPayers(chain, executor);
    account = await TestAccount.create(chain, executor);
    pkp = await account.mintPkp();
    otherPkp = await account.mintPkp();
    await account.addGroup([SIGN, HELLO], [pkp]); // group 1
    await account.addGroup(["any"], [otherPkp]); // group 2
  });
  after(async () => {
    await executor?.stop();
    await chain?.stop();
  });

  it("signs with a PKP the group lists, and the signature recovers to the PKP", async () => {
    const signature = response(await executor.run(account.key, SIGN, { pkpId: pkp, message: "hello" }));
    expect(verifyMessage("hello", signature as string)).to.equal(pkp);
  });

  it("signs text only: bytes are refused, not signed as their hex text", async () => {
    const bytes = `async function main({ pkpId }) {
      return await Actions.signMessage({ pkpId, message: new Uint8Array([1, 2]) });
    }`;
    const { answer } = await executor.run(account.key, bytes, { pkpId: otherPkp });
    expect(answer?.error?.message).to.contain("message must be a string");
  });

  it("is permitted for the account key in every group of its account", async () => {
    expect(response(await executor.run(account.key, HELLO))).to.equal("hello");
    expect(response(await executor.run(account.key, UNLISTED))).to.equal("in no group");
    expect(failure(await executor.run(account.key, UNLISTED, {}, pkp))).to.equal("pkp_not_permitted/pkp");
  });

  it("requires, also with the wildcard scope, one group that lists both action and PKP", async () => {
    const { key } = await account.addUsageKey([0]);
    expect(response(await executor.run(key, HELLO, {}, pkp))).to.equal("hello");
    expect(failure(await executor.run(key, UNLISTED, {}, pkp))).to.equal("pkp_not_permitted/pkp");
    expect(failure(await executor.run(key, SIGN, { pkpId: `0x${"12".repeat(20)}`, message: "" }))).to.equal(
      "permission_denied",
    );
  });

  it("names what failed: key, group, action or PKP", async () => {
    const nowhere = await account.addUsageKey([]);
    const first = await account.addUsageKey([1]);
    const { usageApiKey } = await executor.call("mintApiUsageKey", {});
    expect(failure(await executor.run(usageApiKey, HELLO))).to.equal("unknown_key/key");
    expect(failure(await executor.run(nowhere.key, HELLO))).to.equal("no_execute_scope/group");
    expect(failure(await executor.run(first.key, UNLISTED))).to.equal("action_not_permitted/action");
    expect(failure(await executor.run(first.key, HELLO, {}, otherPkp))).to.equal("pkp_not_permitted/pkp");
    expect(failure(await executor.run(first.key, HELLO, {}, `0x${"12".repeat(20)}`))).to.equal("pkp_not_permitted/pkp");
  });

  it("is refused on the very next request after its key was revoked", async () => {
    const { key, id } = await account.addUsageKey([1]);
    expect(response(await executor.run(key, HELLO))).to.equal("hello");
    await account.write("removeUsageApiKey", [account.id, id]);
    expect(failure(await executor.run(key, HELLO))).to.equal("unknown_key/key");
  });

  /** What becomes of runs that wait for the place of another one while the owner changes something. */
  const queuedDuring = async (
    change: () => Promise<unknown>,
    key: string,
    queue: () => Promise<Outcome<"run">>[],
  ): Promise<Outcome<"run">[]> => {
    const first = executor.run(key, SLOW);
    await new Promise((resolve) => setTimeout(resolve, 300));
    const queued = queue();
    await change();
    const changedAt = Date.now();
    const outcome = await first;
    if (outcome.refusal !== undefined) throw new TooLate("the first run had not begun when the change was mined");
    // What was permitted a moment before the change may begin for a second.
    expectInTime(changedAt + 1_000, response(outcome) as number, "a second after the change");
    return Promise.all(queued);
  };

  itInTime("is refused when its key was revoked while it was queued", async () => {
    const { key, id } = await account.addUsageKey([1, 2]);
    const revoke = () => account.write("removeUsageApiKey", [account.id, id]);
    const outcomes = await queuedDuring(revoke, key, () => [HELLO, SLOW].map((code) => executor.run(key, code)));
    expect(outcomes.map(failure)).to.deep.equal(["unknown_key/key", "unknown_key/key"]);
  });

  itInTime("may not use its PKP for an op that the owner denied while it was queued", async () => {
    const deny = () => account.write("setPkpOps", [account.id, pkp, "1"]);
    try {
      const sign = () => executor.run(account.key, SIGN, { pkpId: pkp, message: "hello" }, pkp);
      const outcomes = await queuedDuring(deny, account.key, () => [sign()]);
      expect(outcomes.map(failure)).to.deep.equal(["permission_denied"]);
    } finally {
      await account.write("setPkpOps", [account.id, pkp, "0"]);
    }
  });

  it("is refused on the very next request after the action left the group", async () => {
    const { key } = await account.addUsageKey([1]);
    const action = actionHashOf(await cidOfCode(HELLO));
    await account.write("removeActionFromGroup", [account.id, "1", action]);
    expect(failure(await executor.run(key, HELLO))).to.equal("action_not_permitted/action");
    await account.write("addActionToGroup", [account.id, "1", action]);
    expect(response(await executor.run(key, HELLO))).to.equal("hello");
  });

  it("is refused from the second at which its key expires", async () => {
    const now = (await chain.provider.getBlock("latest"))?.timestamp ?? 0;
    const { key } = await account.addUsageKey([1], now + 1_000);
    expect(response(await executor.run(key, HELLO))).to.equal("hello");
    await chain.provider.send("evm_setNextBlockTimestamp", [now + 999]);
    await chain.provider.send("evm_mine", []);
    expect(response(await executor.run(key, HELLO))).to.equal("hello");
    await chain.provider.send("evm_setNextBlockTimestamp", [now + 1_000]);
    await chain.provider.send("evm_mine", []);
    expect(failure(await executor.run(key, HELLO))).to.equal("key_expired/key");
  });

  it("also accepts a key by the hash of its decoded bytes", async () => {
    const { usageApiKey } = await executor.call("mintApiUsageKey", {});
    await account.setUsageKey(keccak256(Buffer.from(usageApiKey, "base64")), [1]);
    expect(response(await executor.run(usageApiKey, HELLO))).to.equal("hello");
  });

  it("accepts neither a hash nor raw bytes nor another encoding as a key", async () => {
    const id = account.id;
    const respelled = account.key.replace(/.=$/, (end) => `${String.fromCharCode(end.charCodeAt(0) + 1)}=`);
    for (const key of [
      id,
      id.slice(2),
      Buffer.from(id.slice(2), "hex").toString("base64").slice(0, 43),
      account.key.trimEnd().slice(0, 43),
      ` ${account.key}`,
      respelled,
      "",
    ]) {
      expect((await executor.run(key, HELLO)).refusal?.code).to.be.oneOf(["malformed_key", "unknown_key"]);
    }
  });

  it("gets no signature of a PKP it may not use; an uncaught refusal ends the run", async () => {
    const { key } = await account.addUsageKey([1]);
    const caught = `async function main({ pkpId }) {
      try {
        return await Actions.signMessage({ pkpId, message: "" });
      } catch (error) {
        return error.code;
      }
    }`;
    await account.write("addActionToGroup", [account.id, "1", actionHashOf(await cidOfCode(caught))]);
    expect(response(await executor.run(key, caught, { pkpId: pkp }))).to.match(/^0x[0-9a-f]{130}$/);
    expect(response(await executor.run(key, caught, { pkpId: otherPkp }))).to.equal("permission_denied");
    expect(failure(await executor.run(key, SIGN, { pkpId: otherPkp, message: "" }))).to.equal("permission_denied");
  });

  it("returns a private key only to an action that a group lists by name", async () => {
    expect(failure(await executor.run(account.key, PRIVATE_KEY, { pkpId: otherPkp }))).to.equal("permission_denied");
    await account.addGroup([PRIVATE_KEY], [otherPkp]);
    expect(response(await executor.run(account.key, PRIVATE_KEY, { pkpId: otherPkp }))).to.equal(66);
  });

  it("runs code by CID once an authorised run sent it, and recomputes the CID of the stored code", async () => {
    const code = `async function main() { return "kept"; }`;
    const cid = await cidOfCode(code);
    const byCid = (): Promise<Outcome<"run">> =>
      executor.ask("run", { credential: { type: "key", key: account.key }, cid, params: "{}", limitMs: 5_000 });
    expect((await byCid()).refusal?.code).to.be.oneOf(["code_not_found", "code_unavailable"]);
    expect(response(await executor.run(account.key, code))).to.equal("kept");
    expect(response(await byCid())).to.equal("kept");
    const { writeFileSync } = await import("node:fs");
    writeFileSync(`${executor.folder}/data/code/${cid}`, `async function main() { return "swapped"; }`);
    expect((await byCid()).refusal?.code).to.be.oneOf(["code_not_found", "code_unavailable"]);
  });

  it("stores nothing of a refused run", async () => {
    const code = `async function main() { return "a stranger's"; }`;
    const { usageApiKey } = await executor.call("mintApiUsageKey", {});
    expect(failure(await executor.run(usageApiKey, code))).to.equal("unknown_key/key");
    const { existsSync } = await import("node:fs");
    expect(existsSync(`${executor.folder}/data/code/${await cidOfCode(code)}`)).to.equal(false);
  });

  it("runs exactly the text of its CID, with surrogates and byte-order marks", async () => {
    const lone = `async function main() { return "\ud800".codePointAt(0); }`;
    expect(response(await executor.run(account.key, lone))).to.equal(0xfffd);
    const { answer } = await executor.run(account.key, `\ufeffasync function main() { return 1; }`);
    expect(answer?.cid).to.equal(await cidOfCode(`\ufeffasync function main() { return 1; }`));
  });

  it("computes the CID of large code off the main thread, with the same result", async () => {
    const large = `async function main() { return 7; } //${"x".repeat(400_000)}`;
    const { answer } = await executor.run(account.key, large);
    expect(answer?.cid).to.equal(await cidOfCode(large));
    expect(answer?.response).to.equal("7");
  });

  it("rejects an invalid request before anything runs", async () => {
    const base = { credential: { type: "key", key: account.key }, params: "{}", limitMs: 5_000 };
    const codes: Record<string, object> = {
      "no code": base,
      "code and another CID": { ...base, code: HELLO, cid: await cidOfCode("async function main() {}") },
      "bad CID": { ...base, cid: "Qmnonsense" },
      "params a list": { ...base, code: HELLO, params: "[]" },
      "params not JSON": { ...base, code: HELLO, params: "{" },
      "params too large": { ...base, code: HELLO, params: JSON.stringify({ a: "x".repeat(131_072) }) },
      "limit zero": { ...base, code: HELLO, limitMs: 0 },
    };
    const refusals = await Promise.all(
      Object.entries(codes).map(async ([name, body]) => [name, (await executor.ask("run", body)).refusal?.code]),
    );
    expect(Object.fromEntries(refusals)).to.deep.equal({
      "no code": "invalid_value",
      "code and another CID": "code_unavailable",
      "bad CID": "invalid_cid",
      "params a list": "invalid_value",
      "params not JSON": "invalid_value",
      "params too large": "params_too_large",
      "limit zero": "invalid_body",
    });
  });

  it("accepts params of exactly the limit and not one byte more", async () => {
    const ofBytes = (bytes: number): string => JSON.stringify({ a: "x".repeat(bytes - 8) });
    const ask = (params: string): Promise<string> =>
      executor.codeOf("run", { credential: { type: "key", key: account.key }, code: HELLO, params, limitMs: 5_000 });
    expect(ofBytes(131_072).length).to.equal(131_072);
    expect(await ask(ofBytes(131_072))).to.equal("allowed");
    expect(await ask(ofBytes(131_073))).to.equal("params_too_large");
  });

  it("is refused for the account key of a converted account, while its usage keys keep working", async () => {
    const converted = await TestAccount.create(chain, executor);
    const owner = await chain.wallet();
    const itsPkp = await converted.mintPkp();
    await converted.addGroup([HELLO], [itsPkp]);
    const { key } = await converted.addUsageKey([1]);
    await converted.write("transferOwnership", [converted.id, owner.address]);
    expect(failure(await executor.run(converted.key, HELLO))).to.equal("account_chain_secured/key");
    expect(response(await executor.run(key, HELLO, {}, itsPkp))).to.equal("hello");
    await mined(chain.contract.connect(owner).removeUsageApiKey(converted.id, keccak256(Buffer.from(key))));
    expect(failure(await executor.run(key, HELLO))).to.equal("unknown_key/key");
  });

  it(
    "never uses the wallet of a usage key as a PKP, nor a PKP registered under a path " +
      "that leads to another address",
    async () => {
      const owner = await chain.wallet();
      const { apiKeyHash } = await executor.call("mintAccountKey", {});
      await mined(chain.contract.connect(owner).newChainSecuredAccount("own", ""));
      const id = keccak256(owner.address);
      const stolen = await executor.call("mintPkp", { accountId: id });
      const wrongAddress = `0x${"77".repeat(20)}`;
      const asOwner = chain.contract.connect(owner);
      await mined(asOwner.registerWalletDerivation(id, wrongAddress, stolen.derivationPath, "", ""));
      await mined(asOwner.addGroup(id, "", "", [actionHashOf(await cidOfCode(SIGN))], [wrongAddress]));
      const { usageApiKey, apiKeyHash: keyId } = await executor.call("mintApiUsageKey", {});
      await mined(asOwner.setUsageApiKey(id, keyId, 0, 0, "", "", false, false, false, [], [], [], [1]));
      expect(failure(await executor.run(usageApiKey, SIGN, { pkpId: wrongAddress, message: "" }))).to.equal(
        "permission_denied",
      );
      expect(apiKeyHash).to.not.equal(id);
    },
  );
});
