/**
 * Forward requests share transactions, too: each keeps its id, result, error and price, whatever happens to the others.
 */
import { expect } from "chai";
import { Wallet, type HDNodeWallet } from "ethers";
import type { SignedForwardRequest } from "../../../../protocol/forwardShape";
import { packedAccountId, type AccountId, type Address } from "../../../../protocol/ids";
import { parseSubmissionId } from "../../../../relayer/chain";
import type { Chain, SubmitAnswer, SubmitRequest } from "../../../../relayer/chain/types";
import { ERC2771Forwarder__factory } from "../../../../typechain-types";
import {
  addGroup,
  ChainBed,
  eventually,
  forwarded,
  freshAccountId,
  newAccount,
  signForward,
} from "../../../support/chainBed";
import { dieOnceSigned, expectAtRest, expectKeptOverReorg, occupyLane, ONE_IN_FLIGHT } from "../../../support/batches";
import { refusal } from "../../../support/refusal";
import { refuseWith } from "../../../support/rpcProxy";

const COUNT = 8;
const FORWARDER = ERC2771Forwarder__factory.createInterface();

interface Owner {
  readonly wallet: HDNodeWallet;
  readonly id: AccountId;
}

describe("forward requests together", function () {
  this.timeout(60_000);
  let bed: ChainBed;
  let chain: Chain;
  let owners: Owner[];
  before(async () => {
    bed = await ChainBed.start({ payers: 2 });
    ({ chain } = await bed.open({ tuning: ONE_IN_FLIGHT, payerCount: 1 }));
    owners = Array.from({ length: COUNT }, newOwner);
    await Promise.all(owners.map(({ wallet, id }) => chain.submit(made(wallet, id))));
  });
  after(() => bed?.stop());
  afterEach(() => expectAtRest(bed, chain));

  const reserve = async (): Promise<boolean> => true;
  const newOwner = (): Owner => {
    const wallet = Wallet.createRandom();
    return { wallet, id: packedAccountId(wallet.address as Address) };
  };
  const made = (wallet: HDNodeWallet, id: AccountId): SubmitRequest =>
    forwarded(bed, wallet, id, { functionName: "newChainSecuredAccount", args: ["mine", ""] });
  const group = ({ wallet, id }: Owner, name: string, more: Partial<SubmitRequest> = {}): SubmitRequest =>
    forwarded(bed, wallet, id, { functionName: "addGroup", args: [id, name, "", [], []] }, { reserve, ...more });
  const groupCounts = (): Promise<number[]> => Promise.all(owners.map(({ id }) => bed.groupCount(id)));
  const transactionsOf = (answers: readonly SubmitAnswer[]): Set<string> =>
    new Set(answers.map(({ transactionHash }) => transactionHash));
  const nonceOf = async ({ wallet }: Owner): Promise<bigint> =>
    ERC2771Forwarder__factory.connect(await bed.contract.trustedForwarder(), bed.provider).nonces(wallet.address);
  const chargedFor = (id: unknown): boolean | undefined =>
    bed.outcomes.find(({ submissionId }) => submissionId === parseSubmissionId(String(id)))?.charged;

  const occupied = (): Promise<() => Promise<void>> => occupyLane(bed, chain);

  it("one nonce, one signature, a result for each request", async () => {
    const release = await occupied();
    const signatures = bed.executor.calls.filter((name) => name === "signForwards").length;
    const before = await groupCounts();
    const writing = owners.map((owner, index) => chain.submit(group(owner, `together ${index}`)));
    await release();
    const answers = await Promise.all(writing);
    expect(transactionsOf(answers).size).to.equal(1);
    expect(bed.executor.calls.filter((name) => name === "signForwards").length - signatures).to.equal(1);
    expect(answers.map(({ result }) => result.group_id)).to.deep.equal(before.map((count) => String(count + 1)));
    expect(new Set(answers.map(({ submissionId }) => submissionId)).size).to.equal(COUNT);
    for (const { submissionId } of answers) expect(chargedFor(submissionId)).to.equal(true);
    const sent = await bed.provider.getTransaction(answers[0]?.transactionHash ?? "");
    expect(FORWARDER.decodeFunctionData("executeBatch", sent?.data ?? "0x")[0]).to.have.length(COUNT);
  });

  it("are sent beside the writes of payers, each kind in its own transaction", async () => {
    const managed = Array.from({ length: 3 }, freshAccountId);
    await Promise.all(managed.map((id) => chain.submit(newAccount(id))));
    const release = await occupied();
    const [forwards, writes] = [
      owners.map((owner) => chain.submit(group(owner, "signed"))),
      managed.map((id) => chain.submit(addGroup(id, "paid"))),
    ];
    await release();
    expect(transactionsOf(await Promise.all(forwards)).size).to.equal(1);
    expect(transactionsOf(await Promise.all(writes)).size).to.equal(1);
  });

  it("one that would fail is excluded: it gets its named error, and its forwarder nonce stays", async () => {
    const [bad, ...good] = owners as [Owner, ...Owner[]];
    const nonce = await nonceOf(bad);
    const release = await occupied();
    const refused = refusal(
      chain.submit(
        forwarded(bed, bad.wallet, bad.id, { functionName: "removeGroup", args: [bad.id, "999"] }, { reserve }),
      ),
    );
    const writing = good.map((owner) => chain.submit(group(owner, "good")));
    await release();
    expect((await refused).code).to.equal("unknown_group");
    expect(transactionsOf(await Promise.all(writing)).size).to.equal(1);
    expect(await nonceOf(bad)).to.equal(nonce);
  });

  it("one whose call fails on chain fails alone, with its named error, uncharged", async () => {
    const [victim, ...good] = owners as [Owner, ...Owner[]];
    const { result } = await chain.submit(group(victim, "to be removed"));
    const removal = { functionName: "removeGroup", args: [victim.id, result.group_id ?? ""] };
    const release = await occupied();
    const failing = refusal(chain.submit(forwarded(bed, victim.wallet, victim.id, removal, { reserve })));
    const writing = good.map((owner) => chain.submit(group(owner, "beside a failure")));
    // After the simulation and before the batch is mined the owner removes the group directly.
    await bed.provider.send("anvil_setBalance", [victim.wallet.address, "0xde0b6b3a7640000"]);
    bed.proxy.injectTimes(1, "eth_sendRawTransaction", async () => {
      const own = bed.contract.connect(victim.wallet.connect(bed.provider));
      await (await own.removeGroup(victim.id, result.group_id ?? "", { gasLimit: 300_000 })).wait();
      return undefined;
    });
    await release();
    const error = await failing;
    expect([error.code, error.facts.charged]).to.deep.equal(["unknown_group", undefined]);
    expect(chargedFor(error.facts.submission_id)).to.equal(false);
    expect(transactionsOf(await Promise.all(writing))).to.deep.equal(new Set([error.facts.transaction_hash]));
  });

  it("one whose nonce another service used meanwhile fails alone, uncharged, and says so", async () => {
    const [victim, ...good] = owners as [Owner, ...Owner[]];
    const signed = await signForward(bed, victim.wallet, {
      functionName: "addGroup",
      args: [victim.id, "once", "", [], []],
    });
    const counted = await bed.groupCount(victim.id);
    const release = await occupied();
    const losing = refusal(chain.submit(group(victim, "once", { forward: signed })));
    const writing = good.map((owner) => chain.submit(group(owner, "beside a race")));
    bed.proxy.injectTimes(1, "eth_sendRawTransaction", async () => {
      const rival = ERC2771Forwarder__factory.connect(
        await bed.contract.trustedForwarder(),
        bed.executor.wallet(2).connect(bed.provider),
      );
      await (await rival.execute(signed, { gasLimit: 800_000 })).wait();
      return undefined;
    });
    await release();
    const error = await losing;
    expect([error.code, error.facts.next_nonce, error.facts.charged]).to.deep.equal([
      "forward_nonce_used",
      String(await nonceOf(victim)),
      undefined,
    ]);
    expect(chargedFor(error.facts.submission_id)).to.equal(false);
    expect(transactionsOf(await Promise.all(writing))).to.deep.equal(new Set([error.facts.transaction_hash]));
    expect(await bed.groupCount(victim.id)).to.equal(counted + 1);
  });

  it(
    "in a transaction of its own, the same race is lost uncharged, too; a call that " +
      "reverts there is named and charged",
    async () => {
      const owner = owners[0] as Owner;
      await bed.provider.send("anvil_setBalance", [owner.wallet.address, "0xde0b6b3a7640000"]);
      const signed = await signForward(bed, owner.wallet, {
        functionName: "addGroup",
        args: [owner.id, "race", "", [], []],
      });
      const forwarder = await bed.contract.trustedForwarder();
      bed.proxy.injectTimes(1, "eth_sendRawTransaction", async () => {
        const rival = ERC2771Forwarder__factory.connect(forwarder, bed.executor.wallet(2).connect(bed.provider));
        await (await rival.execute(signed, { gasLimit: 800_000 })).wait();
        return undefined;
      });
      const lost = await refusal(chain.submit(group(owner, "race", { forward: signed })));
      expect([lost.code, chargedFor(lost.facts.submission_id)]).to.deep.equal(["forward_nonce_used", false]);

      const groupId = String(await bed.groupCount(owner.id));
      bed.proxy.injectTimes(1, "eth_sendRawTransaction", async () => {
        await (
          await bed.contract
            .connect(owner.wallet.connect(bed.provider))
            .removeGroup(owner.id, groupId, { gasLimit: 300_000 })
        ).wait();
        return undefined;
      });
      const removal = { functionName: "removeGroup", args: [owner.id, groupId] };
      const reverted = await refusal(chain.submit(forwarded(bed, owner.wallet, owner.id, removal, { reserve })));
      expect([reverted.code, reverted.facts.charged, chargedFor(reverted.facts.submission_id)]).to.deep.equal([
        "unknown_group",
        true,
        true,
      ]);
    },
  );

  it("two accounts of one signer use consecutive nonces, one after the other", async () => {
    const [ann, bob] = [owners[0] as Owner, owners[1] as Owner];
    await chain.submit(
      forwarded(bed, bob.wallet, bob.id, { functionName: "transferOwnership", args: [bob.id, ann.wallet.address] }),
    );
    const nonce = await nonceOf(ann);
    const two = [ann.id, bob.id, ann.id, bob.id].map((id) => chain.submit(group({ wallet: ann.wallet, id }, "of Ann")));
    const answers = await Promise.all(two);
    expect(answers.every(({ result }) => result.group_id !== undefined)).to.equal(true);
    expect(await nonceOf(ann)).to.equal(nonce + 4n);
    await chain.submit(
      forwarded(bed, ann.wallet, bob.id, { functionName: "transferOwnership", args: [bob.id, bob.wallet.address] }),
    );
  });

  it("two relayers on one store send the same request once, and both answer it", async () => {
    const other = await bed.open({ payerCount: 1 });
    const owner = owners[2] as Owner;
    const [counted, begun] = [await bed.groupCount(owner.id), bed.begun.length];
    const forward = await signForward(bed, owner.wallet, {
      functionName: "addGroup",
      args: [owner.id, "from two", "", [], []],
    });
    const same = group(owner, "from two", { forward, idempotencyKey: `relay:${forward.signature}` });
    const answers = await Promise.all([chain, other.chain, chain, other.chain].map((one) => one.submit(same)));
    expect(transactionsOf(answers).size).to.equal(1);
    expect(new Set(answers.map(({ submissionId }) => submissionId)).size).to.equal(1);
    expect(answers.map(({ replayed }) => replayed).filter((replayed) => !replayed)).to.have.length(1);
    expect(await bed.groupCount(owner.id)).to.equal(counted + 1);
    expect(bed.begun.length - begun, "paid once").to.equal(1);
    await other.close();
  });

  it("a relayer that dies with signed requests loses none of them: another completes them", async () => {
    const before = await groupCounts();
    await dieOnceSigned(bed, chain, (dying) => owners.map((owner) => dying.submit(group(owner, "carried on"))));
    await eventually("every one landed once", async () =>
      (await groupCounts()).every((count, index) => count === (before[index] ?? 0) + 1),
    );
  });

  it("after a reorg all are sent again, and each keeps its result", async () => {
    const release = await occupied();
    const writing = owners.map((owner) => chain.submit(group(owner, "over a reorg")));
    await release();
    await expectKeptOverReorg(bed, chain, await Promise.all(writing));
  });

  it("a transaction that no node accepts is given up: its requests are uncharged, their nonces kept", async () => {
    const nonces = await Promise.all(owners.map(nonceOf));
    const release = await occupied();
    const writing = owners.map((owner) => refusal(chain.submit(group(owner, "given up"))));
    await new Promise((resolve) => setTimeout(resolve, 100));
    // Forward requests are long; the transaction that fills the nonce is short.
    bed.proxy.inject((call, forward) =>
      call.method === "eth_sendRawTransaction" && String(call.params[0]).length > 2_000
        ? refuseWith("transaction type not supported", -32_602)(call, forward)
        : undefined,
    );
    await release();
    const errors = await Promise.all(writing);
    expect(new Set(errors.map(({ code }) => code))).to.deep.equal(new Set(["chain_unavailable"]));
    for (const { facts, detail } of errors) {
      expect(chargedFor(facts.submission_id)).to.equal(false);
      // The same signature gets this outcome again.
      expect(detail).to.include("sign").and.not.include("make it again");
    }
    expect(await Promise.all(owners.map(nonceOf))).to.deep.equal(nonces);
  });

  it("a request with a high gas limit is sent alone, and takes no gas from the others", async () => {
    const [big, ...small] = owners as [Owner, ...Owner[]];
    const forward = await signForward(
      bed,
      big.wallet,
      { functionName: "addGroup", args: [big.id, "big", "", [], []] },
      { gas: "8000000" },
    );
    const release = await occupied();
    const [alone, ...rest] = [
      chain.submit(group(big, "big", { forward })),
      ...small.map((owner) => chain.submit(group(owner, "small"))),
    ];
    await release();
    const others = transactionsOf(await Promise.all(rest));
    expect(others.size).to.equal(1);
    expect(others.has((await alone).transactionHash)).to.equal(false);
  });

  it("the limit follows the gas that requests use, not the gas they name", async () => {
    const gas = "900000";
    const signed = await Promise.all(
      owners.map(({ wallet, id }) =>
        signForward(bed, wallet, { functionName: "addGroup", args: [id, "all named", "", [], []] }, { gas }),
      ),
    );
    const release = await occupied();
    const writing = owners.map((owner, index) =>
      chain.submit(group(owner, "all named", { forward: signed[index] as SignedForwardRequest })),
    );
    await release();
    const answers = await Promise.all(writing);
    expect(transactionsOf(answers).size).to.equal(1);
    const hash = answers[0]?.transactionHash ?? "";
    const [sent, receipt] = await Promise.all([
      bed.provider.getTransaction(hash),
      bed.provider.getTransactionReceipt(hash),
    ]);
    expect(Number(sent?.gasLimit)).to.be.lessThan(1.5 * Number(receipt?.gasUsed));
  });

  it("one that would fail after another of its transaction is excluded: it gets its named error", async () => {
    const [ann, bob] = [owners[0] as Owner, owners[1] as Owner];
    const [keyHash, before] = [freshAccountId(), await nonceOf(bob)];
    const expiresAt = String(Math.floor(Date.now() / 1_000) + 3_600);
    const sameKey = ({ wallet, id }: Owner): Promise<SubmitAnswer> =>
      chain.submit(
        forwarded(
          bed,
          wallet,
          id,
          {
            functionName: "setUsageApiKey",
            args: [id, keyHash, expiresAt, "0", "", "", false, false, false, [], [], [], []],
          },
          { reserve },
        ),
      );
    const release = await occupied();
    const [first, second] = [sameKey(ann), refusal(sameKey(bob))];
    const third = chain.submit(group(owners[2] as Owner, "beside them"));
    await release();
    expect((await first).transactionHash).to.equal((await third).transactionHash);
    const error = await second;
    expect(error.facts.submission_id, "it was never sent").to.equal(undefined);
    expect(await nonceOf(bob)).to.equal(before);
  });
});
