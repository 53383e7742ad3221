/** The op handler of one run over a mocked contract that grants one PKP, for attacks by arguments. */
import type { Authorization } from "../../executor/authorize";
import type { Chain } from "../../executor/chain/chain";
import { useFastKeccak } from "../../executor/keccak";
import { Keyring } from "../../executor/keys/keyring";
import { createOps } from "../../executor/ops/ops";
import type { OpAnswer, OpHandler } from "../../executor/sandbox/types";
import type { Decision } from "../../protocol/decision";
import type { AccountId, Cid, Hash32, KeyId, PkpId } from "../../protocol/ids";
import { RUN_LIMITS } from "../../protocol/limits";

const keyring = new Keyring(Buffer.alloc(32, 7), `0x${"5a".repeat(32)}` as Hash32);

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
  const decision: Decision = {
    allowed: true,
    reason: "None",
    actionByName: true,
    accountId,
    derivationPath: path,
    blockNumber: 1n,
    blockTimestamp: 1n,
    deniedOps: 0n,
  };
  const run: Authorization = {
    keyId: `0x${"b2".repeat(32)}` as KeyId,
    cid: "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX" as Cid,
    decision,
  };
  const chain = { explain: () => Promise.resolve(decision) } as unknown as Chain;
  const ops = createOps({ chain, keyring, privateKeysAllowed: true, limits: RUN_LIMITS }, run);
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
