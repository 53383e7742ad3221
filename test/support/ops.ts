/** The op handler of one run over a mocked contract that grants one PKP, for attacks by arguments. */
import type { Chain } from "../../executor/chain/chain";
import { useFastKeccak } from "../../protocol/keccak";
import { createOps } from "../../executor/ops/ops";
import type { OpAnswer, OpHandler } from "../../executor/sandbox/types";
import type { AccountId, PkpId } from "../../protocol/ids";
import { RUN_LIMITS } from "../../protocol/limits";
import { decision, keyring, noBudgets, run, ScriptedChain } from "./scriptedOps";

// As the keyholder does at its start.
before(useFastKeccak);

export interface OpsBed {
  readonly pkpId: PkpId;
  readonly ops: OpHandler;
  answer(name: string, args: object): Promise<OpAnswer>;
  /** "allowed", or the code of the refusal. */
  codeOf(name: string, args: object): Promise<string>;
}

export function opsBed(accountByte = "a1"): OpsBed {
  const accountId = `0x${accountByte.repeat(32)}` as AccountId;
  const { path, address } = keyring.mintPkp(accountId);
  const granted = decision({ accountId, derivationPath: path });
  const chain = new ScriptedChain(() => granted) as unknown as Chain;
  const ops = createOps(
    { chain, keyring, privateKeysAllowed: true, limits: RUN_LIMITS, budgets: noBudgets },
    { ...run, decision: granted },
  );
  const answer = (name: string, args: object): Promise<OpAnswer> => ops({ name, args: JSON.stringify(args) });
  const codeOf = async (name: string, args: object): Promise<string> => {
    const given = await answer(name, args);
    return given.ok ? "allowed" : given.code;
  };
  return { pkpId: address as unknown as PkpId, ops, answer, codeOf };
}

/** The longest event-loop block during `work`, in ms of CPU time: on a busy machine wall time is meaningless. */
export async function longestHold(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let last = process.cpuUsage();
  const timer = setInterval(() => {
    const { user, system } = process.cpuUsage(last);
    longest = Math.max(longest, (user + system) / 1_000);
    last = process.cpuUsage();
  }, 1);
  await work();
  await new Promise((resolve) => setTimeout(resolve, 5));
  clearInterval(timer);
  return longest;
}
