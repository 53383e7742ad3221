/** Queries the allow-list contract as dstack's KMS does before it releases an application's keys. */
import { Interface } from "ethers";
import { ethCall, type Endpoints } from "./rpc";
import { Unavailable } from "./material";
import { Malformed } from "./types";

const AUTHORITY = new Interface([
  "function isAppAllowed((address appId, bytes32 composeHash, address instanceId, bytes32 deviceId, bytes32 " +
    "mrAggregated, bytes32 mrSystem, bytes32 osImageHash, string tcbStatus, string[] advisoryIds) bootInfo) view " +
    "returns (bool isAllowed, string reason)",
]);
const ZERO32 = `0x${"00".repeat(32)}`;

/** From the verified event log, except the device, which the log does not name. */
export interface BootFacts {
  readonly appId: Buffer;
  readonly composeHash: Buffer;
  readonly instanceId: Buffer;
  readonly deviceId?: string;
}

/** The contract, which is on the account contract's chain. */
export interface Allowlist {
  readonly endpoints: Endpoints;
  readonly chainId: number;
  readonly contract: string;
}

/** Throws Malformed when the contract denies, Unavailable when it cannot be queried. */
export async function askAllowlist(allowlist: Allowlist, facts: BootFacts): Promise<void> {
  const { endpoints, chainId, contract } = allowlist;
  const data = AUTHORITY.encodeFunctionData("isAppAllowed", [bootInfoOf(facts)]);
  const answer = await ethCall(endpoints, { chain: "the allow-list's chain", chainId, to: contract, data });
  if (answer === "0x") throw new Malformed(`there is no allow-list contract at ${contract} on this chain`);
  let allowed: unknown, reason: unknown;
  try {
    [allowed, reason] = AUTHORITY.decodeFunctionResult("isAppAllowed", answer);
  } catch {
    throw new Malformed(`the contract at ${contract} is no allow-list`);
  }
  if (allowed !== true)
    throw new Malformed(`the contract does not allow this compose hash: ${String(reason) || "no reason given"}`);
}

const LIST = new Interface([
  "function delaySeconds() view returns (uint256)",
  "function composeHashes() view returns ((bytes32 value, uint256 activeFrom)[])",
]);
const MAX_SHOWN = 3;

export interface ListFacts {
  readonly note?: string;
  readonly warning?: string;
}

/**
 * How long an added image waits, and which others get the same keys now. Reported, not checked: any delay is valid, and
 * another kind of allow-list states neither.
 */
export async function listFactsOf(allowlist: Allowlist, ownHash: string, nowSeconds: number): Promise<ListFacts> {
  try {
    const delay = (await read(allowlist, "delaySeconds")) as bigint;
    const entries = (await read(allowlist, "composeHashes")) as readonly { value: string; activeFrom: bigint }[];
    const others = entries.filter(({ value, activeFrom }) => value !== ownHash && activeFrom <= BigInt(nowSeconds));
    const shown = others.slice(0, MAX_SHOWN).map(({ value }) => value);
    const more = others.length > shown.length ? `, and ${others.length - shown.length} more` : "";
    const named = others.length === 0 ? "no other" : `${shown.join(", ")}${more}`;
    return {
      note: `an image added to the allow-list waits ${delay} s; besides this image it allows ${named}`,
      ...(delay === 0n ? { warning: `allow-list delay 0: ${AT_ONCE}` } : {}),
    };
  } catch (error) {
    if (!(error instanceof Malformed || error instanceof Unavailable)) throw error;
    return { warning: `allow-list delay unknown (${error.message}): if there is none, ${AT_ONCE}` };
  }
}

const AT_ONCE = "an image that the list's admin adds gets all keys at once, and owners have no time to leave";

async function read({ endpoints, chainId, contract }: Allowlist, name: string): Promise<unknown> {
  const data = LIST.encodeFunctionData(name);
  const answer = await ethCall(endpoints, { chain: "the allow-list's chain", chainId, to: contract, data });
  try {
    return LIST.decodeFunctionResult(name, answer)[0] as unknown;
  } catch {
    throw new Malformed(`the contract at ${contract} does not state it`);
  }
}

function bootInfoOf({ appId, composeHash, instanceId, deviceId }: BootFacts): object {
  const hex = (bytes: Buffer): string => `0x${bytes.toString("hex")}`;
  const device = deviceId?.length === 64 ? `0x${deviceId}` : ZERO32;
  return {
    appId: hex(appId),
    composeHash: hex(composeHash),
    instanceId: hex(instanceId),
    deviceId: device,
    mrAggregated: ZERO32,
    mrSystem: ZERO32,
    osImageHash: ZERO32,
    tcbStatus: "",
    advisoryIds: [],
  };
}
