/**
 * The keyholder's reads of the chain: old heads, heads that move backward, lying, silent and broken endpoints. In doubt
 * nothing is allowed.
 */
import { expect } from "chai";
import { getAddress, hexlify, type Interface } from "ethers";
import fc from "fast-check";
import {
  ZERO_ADDRESS,
  hash32FromUint,
  type ActionHash,
  type Address,
  type KeyId,
  type PkpId,
} from "../../protocol/ids";
import { AccountManager__factory } from "../../typechain-types";
import { BudgetReads } from "../../executor/chain/budgetReads";
import { leaseDepthOf } from "../../executor/budgets/depth";
import { WrongChain, type Chain, type ChainOptions } from "../../executor/chain/chain";
import { decodeAdmission, encodeAdmission } from "../../protocol/admission";
import { MalformedAnswer } from "../../protocol/abi";
import { DENIAL_REASONS, decodeDecision, encodeQuestion, type Decision } from "../../protocol/decision";
import { keyAnswer } from "../../protocol/keyState";
import { KeywrightError } from "../../protocol/errors";
import { BUDGET } from "../support/budgetWorld";
import { CONTRACT, ChainDoubles, NAMESPACE } from "../support/chainDoubles";
import { SEED, count } from "../support/counts";
import type { RpcDouble, World } from "../support/rpcDouble";
import { expectInTime, itInTime } from "../support/inTime";

const KEY = `0x${"01".repeat(32)}` as KeyId;
const ACTION = `0x${"02".repeat(32)}` as ActionHash;

const word = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n });
const pkp = fc.option(
  fc.uint8Array({ minLength: 20, maxLength: 20 }).map((bytes) => getAddress(hexlify(bytes)) as PkpId),
  { nil: undefined },
);

describe("reading the chain", () => {
  const doubles = new ChainDoubles();
  const double = (world?: Partial<World>): Promise<RpcDouble> => doubles.start(world);
  const over = (endpoints: RpcDouble[], options?: Partial<ChainOptions>): Chain =>
    doubles.chainOver(endpoints, options);
  const ask = (chain: Chain): Promise<Decision> => chain.explain(KEY, ACTION, undefined);
  const codeOf = (chain: Chain): Promise<string> =>
    ask(chain).then(
      ({ allowed }) => (allowed ? "allowed" : "denied"),
      (error: unknown) => (error instanceof KeywrightError ? error.code : String(error)),
    );

  afterEach(() => doubles.stop());

  it("asks once per decision and caches none", async () => {
    const endpoint = await double();
    const chain = over([endpoint]);
    expect(await codeOf(chain)).to.equal("allowed");
    endpoint.world.allowed = false;
    expect(await codeOf(chain)).to.equal("denied");
    expect(endpoint.calls).to.equal(2);
  });

  it("reads the chain's time once for all that ask meanwhile", async () => {
    const endpoint = await double();
    const chain = over([endpoint]);
    const times = await Promise.all(Array.from({ length: 100 }, () => chain.time(1_000)));
    expect(new Set(times).size).to.equal(1);
    expect(endpoint.calls).to.equal(1);
    await chain.time(0);
    expect(endpoint.calls).to.equal(2);
  });

  it("accepts a head of exactly the maximum age and none that is older, nor one from the future", async () => {
    const endpoint = await double({ headTime: 1_000_000 });
    const at = (nowSeconds: number): Promise<string> => codeOf(over([endpoint], { nowSeconds: () => nowSeconds }));
    expect(await at(1_000_060)).to.equal("allowed");
    expect(await at(1_000_061)).to.equal("chain_unavailable");
    expect(await at(1_000_000 - 60)).to.equal("allowed");
    expect(await at(1_000_000 - 61)).to.equal("chain_unavailable");
    expect(await codeOf(over([endpoint], { maxHeadAgeSeconds: 0, nowSeconds: () => 9_000_000 }))).to.equal("allowed");
  });

  it("never decides at a block below one it has seen, and waits briefly for an endpoint that lags", async () => {
    const endpoint = await double();
    const chain = over([endpoint]);
    expect(await codeOf(chain)).to.equal("allowed");
    endpoint.world.head = 99n;
    expect(await codeOf(chain)).to.equal("chain_unavailable");
    setTimeout(() => (endpoint.world.head = 100n), 50);
    expect(await codeOf(chain)).to.equal("allowed");
  });

  it("permits nothing from before a named block; asks a lagging endpoint for that block", async () => {
    const endpoint = await double();
    const chain = over([endpoint]);
    const admitted = (notBefore: number): Promise<string> =>
      chain.admit(KEY, ACTION, { notBefore }).then(
        ({ decision, key }) => `${decision.blockNumber} ${key?.live}`,
        (error: unknown) => (error instanceof KeywrightError ? error.code : String(error)),
      );
    expect([await admitted(0), await admitted(100)]).to.deep.equal(["100 true", "100 true"]);
    endpoint.world.newest = 100n;
    expect(await admitted(101)).to.equal("chain_unavailable");
    setTimeout(() => Object.assign(endpoint.world, { head: 101n, newest: 101n }), 50);
    expect(await admitted(101)).to.equal("101 true");
    endpoint.world.newest = 105n;
    expect(await admitted(104), "another node behind the same endpoint is further").to.equal("104 true");
  });

  it("agrees at no block before the named one, where one endpoint fails and another claims an older head", async () => {
    const headTime = Math.floor(Date.now() / 1000);
    const [honest, failing] = [await double({ headTime }), await double()];
    failing.fault = "refuse";
    // Contracts would see another number at the named block: as on chains where they count otherwise.
    const shownAs = (block: bigint): bigint => (block === 99n ? 97n : block);
    const liar = await double({ head: 98n, headTime: headTime - 24, shownAs });
    const chain = over([honest, failing, liar], { quorum: 2 });
    expect((await ask(chain)).blockNumber, "where none is named").to.equal(98n);
    const failure = await chain.admit(KEY, ACTION, { notBefore: 99 }).catch((error: unknown) => error);
    expect(failure).to.include({ code: "chain_unavailable" });
  });

  it("asks before the named block is known, and again only if that is later", async () => {
    const endpoint = await double();
    const chain = over([endpoint]);
    for (const [block, calls] of [
      [100, 1],
      [102, 2],
    ] as const) {
      const [named, before] = [Promise.withResolvers<number>(), endpoint.calls];
      const admitted = chain.admit(KEY, ACTION, { notBefore: named.promise });
      while (endpoint.calls === before) await new Promise((resolve) => setTimeout(resolve, 5));
      named.resolve(block);
      expect((await admitted).decision.blockNumber).to.equal(BigInt(block));
      expect(endpoint.calls - before).to.equal(calls);
    }
  });

  it("uses the newest block where contracts see other block numbers than nodes", async () => {
    const endpoint = await double({ shownAs: (block) => block / 10n });
    const { decision } = await over([endpoint]).admit(KEY, ACTION, { notBefore: 90 });
    expect(decision.blockNumber).to.equal(10n);
  });

  it("asks the next endpoint at once when the first one lags", async () => {
    const [first, second] = [await double(), await double()];
    const chain = over([first, second]);
    expect(await codeOf(chain)).to.equal("allowed");
    first.world.head = 99n;
    const before = first.calls;
    expect(await codeOf(chain)).to.equal("allowed");
    expect([first.calls - before, second.calls]).to.deep.equal([1, 1]);
  });

  it("asks the next endpoint when the head of the first one is too old, or from the future", async () => {
    const now = 1_000_000;
    const [first, second] = [await double({ headTime: now }), await double({ headTime: now })];
    const clock = { seconds: now };
    const chain = over([first, second], { nowSeconds: () => clock.seconds });
    expect([await codeOf(chain), second.calls]).to.deep.equal(["allowed", 0]);
    clock.seconds = now + 61;
    Object.assign(second.world, { head: 105n, headTime: clock.seconds });
    expect((await ask(chain)).blockNumber, "the first one has stopped").to.equal(105n);
    Object.assign(first.world, { head: 106n, headTime: clock.seconds + 61 });
    expect((await ask(chain)).blockNumber, "the first one's clock is wrong").to.equal(105n);
    Object.assign(first.world, { head: 105n, headTime: clock.seconds });
    const before = second.calls;
    expect((await ask(chain)).blockNumber, "the first one goes on").to.equal(105n);
    expect(second.calls).to.equal(before);
  });

  it("says how old the head is when no endpoint has a newer one", async () => {
    const [first, second] = [await double({ headTime: 1_000_000 }), await double({ headTime: 1_000_000 })];
    for (const quorum of [1, 2]) {
      const chain = over([first, second], { quorum, nowSeconds: () => 1_000_100 });
      const failure = await ask(chain).catch((error: unknown) => error);
      expect(failure).to.include({
        code: "chain_unavailable",
        detail: "The chain's head is 100 seconds old; at most 60 are accepted.",
      });
    }
  });

  it("reads base fee and leases of another endpoint when the head of the first one is too old", async () => {
    const now = Math.floor(Date.now() / 1000);
    const [old, whole] = [
      await double({ headTime: now - 100, baseFee: 1n }),
      await double({ head: 108n, headTime: now, baseFee: 7n }),
    ];
    const chain = over([old, whole]);
    expect(await chain.baseFee()).to.equal(7n);
    const reads = new BudgetReads(chain, CONTRACT, leaseDepthOf(31_337n, undefined));
    expect(await reads.leases(BUDGET, 0n, [ACTION])).to.deep.equal({ head: 108n, leases: [] });
    whole.fault = "refuse";
    expect(await chain.baseFee(), "there is no newer one").to.equal(1n);
    expect(await reads.leases(BUDGET, 0n, [ACTION]).catch((error: unknown) => error)).to.include({
      code: "chain_unavailable",
    });
  });

  it("does not raise its minimum block from an old head that it refused", async () => {
    const endpoint = await double({ head: 1_000_000n, headTime: 5 });
    const chain = over([endpoint]);
    expect(await codeOf(chain)).to.equal("chain_unavailable");
    Object.assign(endpoint.world, { head: 100n, headTime: Math.floor(Date.now() / 1000) });
    expect(await codeOf(chain)).to.equal("allowed");
  });

  for (const fault of ["hang", "refuse", "not json", "rpc error", "huge", "garbage"] as const) {
    itInTime(`allows nothing while the only endpoint has the fault "${fault}"; continues with another`, async () => {
      const [broken, whole] = [await double(), await double()];
      broken.fault = fault;
      const startedAt = Date.now();
      expect(await codeOf(over([broken], { timeoutMs: 300 }))).to.equal("chain_unavailable");
      expectInTime(Date.now() - startedAt, 1_500);
      expect(await codeOf(over([broken, whole], { timeoutMs: 1_000 }))).to.equal("allowed");
    });
  }

  it("with a quorum of two ignores one endpoint that grants everything", async () => {
    const [honest, liar] = [await double({ allowed: false }), await double({ allowed: true })];
    const chain = over([liar, honest], { quorum: 2 });
    expect(await codeOf(chain)).to.equal("chain_unavailable");
    const third = await double({ allowed: false, headTime: honest.world.headTime });
    expect(await codeOf(over([liar, honest, third], { quorum: 2 }))).to.equal("denied");
  });

  it("with a quorum agrees at the newest block that enough endpoints have", async () => {
    const now = Math.floor(Date.now() / 1000);
    const [behind, ahead] = [
      await double({ head: 100n, headTime: now - 12 }),
      await double({ head: 101n, headTime: now }),
    ];
    const decision = await ask(over([ahead, behind], { quorum: 2 }));
    expect(decision.blockNumber).to.equal(100n);
  });

  it("with a quorum of two needs two that answer", async () => {
    const [first, second] = [await double(), await double()];
    const chain = over([first, second], { quorum: 2, timeoutMs: 1_000 });
    expect(await codeOf(chain)).to.equal("allowed");
    second.fault = "hang";
    expect(await codeOf(chain)).to.equal("chain_unavailable");
  });

  itInTime("is not blocked by one endpoint of three that does not answer", async () => {
    const headTime = Math.floor(Date.now() / 1000);
    const [first, second, silent] = [
      await double({ headTime }),
      await double({ headTime }),
      await double({ headTime }),
    ];
    silent.fault = "hang";
    const startedAt = Date.now();
    expect(await codeOf(over([silent, first, second], { quorum: 2, timeoutMs: 5_000 }))).to.equal("allowed");
    expectInTime(Date.now() - startedAt, 1_000);
  });

  it("is not misled by one endpoint of three that claims a block far ahead", async () => {
    const now = Math.floor(Date.now() / 1000);
    const [first, second, liar] = [
      await double({ headTime: now }),
      await double({ headTime: now }),
      await double({ head: 9_999_999n, headTime: now }),
    ];
    const chain = over([first, second, liar], { quorum: 2 });
    expect(await codeOf(chain)).to.equal("allowed");
    first.world.head = second.world.head = 101n;
    expect(await codeOf(chain)).to.equal("allowed");
  });

  it("encodes its question and decodes the answer exactly as the contract's ABI does", () => {
    const abi: Interface = AccountManager__factory.createInterface();
    fc.assert(
      fc.property(
        word,
        word,
        pkp,
        fc.boolean(),
        fc.nat(8),
        word,
        word,
        (key, action, pkpId, allowed, reason, path, block) => {
          const question = encodeQuestion(hash32FromUint(key) as KeyId, hash32FromUint(action) as ActionHash, pkpId);
          expect(question).to.equal(abi.encodeFunctionData("explainExecution", [key, action, pkpId ?? ZERO_ADDRESS]));
          expect(
            decodeDecision(
              abi.encodeFunctionResult("explainExecution", [allowed, reason, !allowed, key, path, block, action, key]),
            ),
          ).to.deep.equal({
            allowed,
            reason: DENIAL_REASONS[reason],
            actionByName: !allowed,
            accountId: hash32FromUint(key),
            derivationPath: path === 0n ? undefined : hash32FromUint(path),
            blockNumber: block,
            blockTimestamp: action,
            deniedOps: key,
          });
        },
      ),
      { seed: SEED, numRuns: count(100, 5_000), examples: [[0n, 0n, undefined, true, 0, 0n, 0n]] },
    );
    for (const bad of [
      "0x",
      `0x${"00".repeat(8 * 32 - 1)}`,
      `0x${"00".repeat(8 * 32 + 1)}`,
      `0x${"00".repeat(31)}02${"00".repeat(7 * 32)}`,
      `0x${"00".repeat(63)}09${"00".repeat(6 * 32)}`,
    ]) {
      expect(() => decodeDecision(bad), bad).to.throw();
    }
  });

  it("asks about run and key in one call, as the contract's ABI defines it", () => {
    const abi: Interface = AccountManager__factory.createInterface();
    fc.assert(
      fc.property(word, word, pkp, fc.boolean(), fc.boolean(), word, (key, action, pkpId, allowed, live, cap) => {
        const keyId = hash32FromUint(key) as KeyId;
        const questions = [
          abi.encodeFunctionData("explainExecution", [key, action, pkpId ?? ZERO_ADDRESS]),
          abi.encodeFunctionData("getKey", [key]),
        ];
        expect(encodeAdmission(keyId, hash32FromUint(action) as ActionHash, pkpId)).to.equal(
          abi.encodeFunctionData("multicall", [questions]),
        );
        const decision = abi.encodeFunctionResult("explainExecution", [allowed, 0, allowed, key, action, 7n, 8n, cap]);
        const state = abi.encodeFunctionResult("getKey", [[key, live, live, allowed, ZERO_ADDRESS, cap, cap, false]]);
        const answer = abi.encodeFunctionResult("multicall", [[decision, state]]);
        expect(decodeAdmission(keyId, answer)).to.deep.equal({
          decision: decodeDecision(decision),
          key: keyAnswer(keyId, state),
        });
        for (const other of [
          [state, decision].slice(1),
          [decision],
          [decision, state, state],
          [decision, `${state}00`],
        ])
          expect(() => decodeAdmission(keyId, abi.encodeFunctionResult("multicall", [other]))).to.throw(
            MalformedAnswer,
          );
      }),
      { seed: SEED, numRuns: count(50, 2_000) },
    );
  });

  it("asks in the same call about a PKP that the run is likely to use", () => {
    const abi: Interface = AccountManager__factory.createInterface();
    fc.assert(
      fc.property(word, word, pkp, pkp, fc.boolean(), word, (key, action, pkpId, named, allowed, other) => {
        const keyId = hash32FromUint(key) as KeyId;
        const ahead = named ?? (ZERO_ADDRESS as Address as PkpId);
        const explain = (about: PkpId | undefined): string =>
          abi.encodeFunctionData("explainExecution", [key, action, about ?? ZERO_ADDRESS]);
        expect(encodeAdmission(keyId, hash32FromUint(action) as ActionHash, pkpId, ahead)).to.equal(
          abi.encodeFunctionData("multicall", [
            [explain(pkpId), abi.encodeFunctionData("getKey", [key]), explain(ahead)],
          ]),
        );
        const answerOf = (path: bigint): string =>
          abi.encodeFunctionResult("explainExecution", [allowed, 0, allowed, key, path, 7n, 8n, 0n]);
        const [decision, second] = [answerOf(action), answerOf(other)];
        const state = abi.encodeFunctionResult("getKey", [[key, true, true, true, ZERO_ADDRESS, 0n, 0n, false]]);
        const answer = abi.encodeFunctionResult("multicall", [[decision, state, second]]);
        expect(decodeAdmission(keyId, answer, true)).to.deep.equal({
          decision: decodeDecision(decision),
          key: keyAnswer(keyId, state),
          ahead: decodeDecision(second),
        });
        for (const wrong of [
          [decision, state],
          [decision, state, second, second],
          [decision, state, `${second}00`],
        ])
          expect(() => decodeAdmission(keyId, abi.encodeFunctionResult("multicall", [wrong]), true)).to.throw(
            MalformedAnswer,
          );
        expect(() => decodeAdmission(keyId, answer)).to.throw(MalformedAnswer);
      }),
      { seed: SEED, numRuns: count(50, 2_000) },
    );
  });

  it("starts only on the configured chain, at a contract whose key namespace is the one computed here", async () => {
    const starts = (endpoint: RpcDouble): Promise<unknown> =>
      over([endpoint], { timeoutMs: 1_000 })
        .requireNamespace(NAMESPACE)
        .then(
          () => "starts",
          (error: unknown) => error,
        );
    expect(await starts(await double())).to.equal("starts");
    expect(await starts(await double({ chainId: 1n }))).to.be.instanceOf(WrongChain);
    expect(await starts(await double({ keyNamespace: `0x${"11".repeat(32)}` }))).to.be.instanceOf(WrongChain);
    expect(await starts(await double({ keyNamespace: "0x" }))).to.be.instanceOf(WrongChain);
    const silent = await double();
    silent.fault = "hang";
    expect(await starts(silent))
      .to.be.instanceOf(Error)
      .and.not.instanceOf(WrongChain);
  });

  it("never puts an endpoint's URL, which may hold a key, into an error", async () => {
    const endpoint = await double();
    endpoint.fault = "refuse";
    const chain = doubles.chainOver([{ url: `${endpoint.url}/v2/canary-provider-key` }]);
    const error = await ask(chain).catch((caught: unknown) => caught);
    const startError = await chain.requireNamespace(NAMESPACE).catch((caught: unknown) => caught);
    for (const each of [error, startError] as Error[])
      expect(`${each.message} ${String(each.cause)} ${each.stack ?? ""}`).to.not.contain("canary");
  });
});
