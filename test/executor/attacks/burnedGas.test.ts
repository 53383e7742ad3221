import { expect } from "chai";
import fc from "fast-check";
import { GasGuard, type GasOffer } from "../../../executor/writes/gas";
import { KeywrightError } from "../../../protocol/errors";
import { count, SEED } from "../../support/counts";

const GWEI = 10n ** 9n;
const COIN = 10n ** 18n;
const MINUTE_MS = 60_000;

describe("attack: a compromised relayer burns the payers' gas", () => {
  let now: number;
  let baseFee: bigint | Error;
  let guard: GasGuard;
  beforeEach(async () => {
    now = 1_000 * MINUTE_MS;
    baseFee = 20n * GWEI;
    guard = new GasGuard(
      { maxFeePerGasWei: 2_000n * GWEI, maxTipPerGasWei: 100n * GWEI, maxWeiPerHour: 10n * COIN },
      () => (typeof baseFee === "bigint" ? Promise.resolve(baseFee) : Promise.reject(baseFee)),
      () => now,
    );
    await guard.ready();
  });
  const codeOf = (offer: Partial<GasOffer>): string => {
    try {
      guard.admit({
        payer: 1,
        nonce: 0,
        gasLimit: 1_000_000n,
        maxFeePerGas: 300n * GWEI,
        maxPriorityFeePerGas: GWEI,
        ...offer,
      });
      return "admitted";
    } catch (error) {
      return (error as KeywrightError).code;
    }
  };

  it("pays at most ten base fees and a tip, and less when fees are low", async () => {
    expect(codeOf({ maxFeePerGas: 300n * GWEI })).to.equal("admitted");
    expect(codeOf({ maxFeePerGas: 300n * GWEI + 1n })).to.equal("no_payer_available");
    baseFee = 1_000n * GWEI;
    now += 6_000;
    await guard.ready();
    await guard.ready();
    expect(codeOf({ maxFeePerGas: 2_000n * GWEI }), "follows a rise").to.equal("admitted");
    expect(codeOf({ maxFeePerGas: 2_000n * GWEI + 1n }), "never above the operator's cap").to.equal(
      "no_payer_available",
    );
    baseFee = GWEI;
    now += 6_000;
    await guard.ready();
    await Promise.resolve();
    expect(
      codeOf({ nonce: 1, maxFeePerGas: 1_000n * GWEI }),
      "a replacement may outbid what was asked for a while ago",
    ).to.equal("admitted");
    now += 11 * MINUTE_MS;
    await guard.ready();
    expect(codeOf({ nonce: 2, maxFeePerGas: 110n * GWEI })).to.equal("admitted");
    expect(codeOf({ nonce: 3, maxFeePerGas: 110n * GWEI + 1n }), "follows the fall").to.equal("no_payer_available");
  });

  it("is stopped by the hour's budget, whatever nonces and payers it names, until the hour has passed", () => {
    const offer = (nonce: number): Partial<GasOffer> => ({
      payer: nonce % 7,
      nonce,
      gasLimit: 10_000_000n,
      maxFeePerGas: 100n * GWEI,
    });
    for (let i = 0; i < 10; i++) expect(codeOf(offer(i)), `coin ${i + 1}`).to.equal("admitted");
    expect(codeOf(offer(10))).to.equal("no_payer_available");
    now += 59 * MINUTE_MS;
    expect(codeOf(offer(11))).to.equal("no_payer_available");
    now += 2 * MINUTE_MS;
    expect(codeOf(offer(12))).to.equal("admitted");
  });

  it("pays no more than the budget in any hour, whenever it asks", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ afterMs: fc.nat({ max: 25 * MINUTE_MS }), gwei: fc.integer({ min: 1, max: 300 }) }), {
          maxLength: 60,
        }),
        async (offers) => {
          now = 1_000 * MINUTE_MS;
          const fresh = new GasGuard(
            { maxFeePerGasWei: 2_000n * GWEI, maxTipPerGasWei: 100n * GWEI, maxWeiPerHour: 10n * COIN },
            () => Promise.resolve(20n * GWEI),
            () => now,
          );
          await fresh.ready();
          const admitted: { readonly at: number; readonly wei: bigint }[] = [];
          for (const [nonce, { afterMs, gwei }] of offers.entries()) {
            now += afterMs;
            const maxFeePerGas = BigInt(gwei) * GWEI;
            try {
              fresh.admit({ payer: 1, nonce, gasLimit: 10_000_000n, maxFeePerGas, maxPriorityFeePerGas: GWEI });
              admitted.push({ at: now, wei: 10_000_000n * maxFeePerGas });
            } catch (error) {
              expect((error as KeywrightError).code).to.equal("no_payer_available");
            }
            const within = admitted.filter(({ at }) => at > now - 60 * MINUTE_MS);
            expect(within.reduce((sum, { wei }) => sum + wei, 0n) <= 10n * COIN).to.equal(true);
          }
        },
      ),
      { seed: SEED, numRuns: count(200, 20_000) },
    ));

  it("counts only the most expensive of the transactions with one nonce: only one of them can be mined", () => {
    for (let i = 0; i < 200; i++)
      expect(codeOf({ gasLimit: 30_000_000n, maxFeePerGas: 300n * GWEI })).to.equal("admitted");
    expect(codeOf({ nonce: 1, gasLimit: 10_000_000n, maxFeePerGas: 100n * GWEI })).to.equal("admitted");
    expect(codeOf({ nonce: 2, gasLimit: 1n })).to.equal("no_payer_available");
  });

  it("signs nothing before a base fee is known, and uses the last known one while the chain is silent", async () => {
    baseFee = new KeywrightError("chain_unavailable", "down");
    now += 9 * MINUTE_MS;
    await guard.ready();
    expect(codeOf({})).to.equal("admitted");
    now += 2 * MINUTE_MS;
    const code = await guard.ready().then(
      () => "ready",
      (error: KeywrightError) => error.code,
    );
    expect(code).to.equal("chain_unavailable");
  });
});
