/** Runs that name ever other PKPs have the chain asked about each: others' questions do not wait behind them all. */
import { expect } from "chai";
import { createOps } from "../../../executor/ops/ops";
import type { Chain } from "../../../executor/chain/chain";
import type { OpAnswer } from "../../../executor/sandbox/types";
import type { AccountId, PkpId } from "../../../protocol/ids";
import { RUN_LIMITS } from "../../../protocol/limits";
import { MAX_CONNECTIONS } from "../../../protocol/rpc/endpoint";
import { decision, keyring, noBudgets, run } from "../../support/scriptedOps";

/** Answers in the order of the questions, each when told to. */
class SlowChain {
  readonly asked: { readonly pkp: PkpId; readonly answer: () => void }[] = [];
  explain(_key: unknown, _action: unknown, pkp: PkpId): Promise<unknown> {
    return new Promise((resolve) =>
      this.asked.push({ pkp, answer: () => resolve(decision({ allowed: false, reason: "UnknownPkp" })) }),
    );
  }
}

const pkpOf = (account: number, n: number): PkpId => `0x${account}${n.toString(16).padStart(39, "0")}` as PkpId;

/** The ops of a run of account n. */
function opsOf(chain: SlowChain, account: number, over?: AbortSignal): (pkpId: PkpId) => Promise<OpAnswer> {
  const accountId = `0x${String(account).repeat(64)}` as AccountId;
  const parts = { keyring, privateKeysAllowed: false, limits: RUN_LIMITS, budgets: noBudgets };
  const ops = createOps(
    { ...parts, chain: chain as unknown as Chain },
    { ...run, decision: decision({ accountId, derivationPath: undefined }) },
  );
  const argsOf = (pkpId: PkpId): string => JSON.stringify({ pkpId, curve: "secp256k1" });
  return (pkpId) => ops({ name: "getPublicKey", args: argsOf(pkpId), ...(over && { over }) });
}

const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 50));

describe("attack: ever other PKPs", () => {
  it("has some questions asked at once, and others' before the rest", async () => {
    const chain = new SlowChain();
    const [attack, honest] = [opsOf(chain, 1), opsOf(chain, 2)];
    const ends = Array.from({ length: 200 }, (_, n) => attack(pkpOf(1, n)));
    await settled();
    expect(chain.asked.length).to.be.below(MAX_CONNECTIONS / 2 + 1);
    const end = honest(pkpOf(2, 0));
    await settled();
    expect(chain.asked.map(({ pkp }) => pkp)).to.include(pkpOf(2, 0));
    for (let answered = 0; answered < 201; answered++) {
      chain.asked[answered]?.answer();
      await new Promise(setImmediate);
    }
    while (chain.asked.length < 201) await settled();
    for (const { answer } of chain.asked) answer();
    for (const each of [...ends, end]) expect(await each).to.include({ ok: false, code: "permission_denied" });
  });

  it("asks nothing more once the run is over, and leaves nothing taken", async () => {
    const chain = new SlowChain();
    const over = new AbortController();
    const attack = opsOf(chain, 3, over.signal);
    const ends = Array.from({ length: 100 }, (_, n) => attack(pkpOf(3, n)));
    await settled();
    const before = chain.asked.length;
    over.abort(new Error("the run is over"));
    for (const { answer } of chain.asked) answer();
    for (const end of ends) expect(await end).to.include({ ok: false, code: "limit_exceeded" });
    expect(chain.asked.length).to.equal(before);
    const again = opsOf(chain, 3);
    void Array.from({ length: MAX_CONNECTIONS / 4 }, (_, n) => again(pkpOf(3, n)));
    await settled();
    expect(chain.asked.length).to.equal(before + MAX_CONNECTIONS / 4);
    for (const { answer } of chain.asked) answer();
  });
});
