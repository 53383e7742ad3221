/** The op handler of one run over scripted decisions of the contract. */
import { Wallet } from "ethers";
import type { Authorization, DecidedAhead } from "../../executor/access/authorize";
import type { Chain } from "../../executor/chain/chain";
import { Keyring } from "../../executor/keys/keyring";
import { createOps } from "../../executor/ops/ops";
import type { OpAnswer, OpHandler } from "../../executor/sandbox/types";
import type { Decision } from "../../protocol/decision";
import { defined } from "../../protocol/defined";
import type { KeywrightError } from "../../protocol/errors";
import type { AccountId, Cid, Hash32, KeyId, PkpId } from "../../protocol/ids";
import { RUN_LIMITS } from "../../protocol/limits";

const NAMESPACE = `0x${"5a".repeat(32)}` as Hash32;
export const ACCOUNT = `0x${"a1".repeat(32)}` as AccountId;
export const CID = "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX" as Cid;
export const OTHER_CID = "Qmf412jQZiuVUtdgnB36FXFX7xg5V6KEbSJ4dpQuhkLyfD" as Cid;
export const keyring = new Keyring(Buffer.alloc(32, 7), NAMESPACE);
export const minted = keyring.mintPkp(ACCOUNT);
export const PKP = minted.address as unknown as PkpId;
export const UNKNOWN = Wallet.createRandom().address as PkpId;

export const decision = (overrides: Partial<Decision> = {}): Decision => ({
  allowed: true,
  reason: "None",
  actionByName: true,
  accountId: ACCOUNT,
  derivationPath: minted.path,
  blockNumber: 1n,
  blockTimestamp: 1n,
  deniedOps: 0n,
  ...overrides,
});

/** Scripted answers of the contract; run.test.ts uses the real contract. */
export class ScriptedChain {
  asked: (PkpId | undefined)[] = [];
  readonly #answer: (pkp: PkpId | undefined) => Decision | KeywrightError;

  constructor(answer: (pkp: PkpId | undefined) => Decision | KeywrightError) {
    this.#answer = answer;
  }
  explain(_key: KeyId | AccountId, _action: string, pkp: PkpId | undefined): Promise<Decision> {
    this.asked.push(pkp);
    const answer = this.#answer(pkp);
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
  }
}
export const known = (pkp: PkpId | undefined): Decision =>
  pkp === undefined || pkp === PKP
    ? decision()
    : decision({ allowed: false, reason: "UnknownPkp", derivationPath: undefined });
export const run: Authorization = { keyId: `0x${"b2".repeat(32)}` as KeyId, cid: CID, decision: decision() };
export function opsOver(
  chain: ScriptedChain,
  options: { privateKeysAllowed?: boolean; pkpId?: PkpId; ahead?: DecidedAhead } = {},
): OpHandler {
  const parts = {
    chain: chain as unknown as Chain,
    keyring,
    privateKeysAllowed: options.privateKeysAllowed ?? true,
    limits: RUN_LIMITS,
    budgets: noBudgets,
  };
  const { pkpId, ahead } = options;
  return createOps(parts, { ...run, ...defined({ ahead }) }, pkpId);
}
export const noBudgets = { spend: (): Promise<bigint> => Promise.reject(new Error("no budgets in this test")) };
export const ops = opsOver(new ScriptedChain(known));
export const answer = (name: string, args: object, handler = ops): Promise<OpAnswer> =>
  handler({ name, args: JSON.stringify(args) });
export async function value(name: string, args: object, handler = ops): Promise<string> {
  const given = await answer(name, args, handler);
  if (!given.ok) throw new Error(`${given.code}: ${given.message}`);
  return JSON.parse(given.value) as string;
}
export async function refusal(name: string, args: object, handler = ops): Promise<string> {
  const given = await answer(name, args, handler);
  return given.ok ? "allowed" : given.code;
}
