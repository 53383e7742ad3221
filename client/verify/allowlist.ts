/** Asks the allow-list contract the question dstack's KMS asks before it gives an application its keys. */
import { Interface, JsonRpcProvider, FetchRequest, isError } from "ethers";
import { Unavailable } from "./material";
import { Malformed } from "./types";

const AUTHORITY = new Interface([
  "function isAppAllowed((address appId, bytes32 composeHash, address instanceId, bytes32 deviceId, bytes32 mrAggregated, bytes32 mrSystem, bytes32 osImageHash, string tcbStatus, string[] advisoryIds) bootInfo) view returns (bool isAllowed, string reason)",
]);
const ZERO32 = `0x${"00".repeat(32)}`;

/** From the verified event log, save the device, which the log does not name. */
export interface BootFacts {
  readonly appId: Buffer;
  readonly composeHash: Buffer;
  readonly instanceId: Buffer;
  readonly deviceId?: string;
}

/** Throws Malformed when the contract says no, Unavailable when it cannot be asked. */
export async function askAllowlist(rpcUrl: string, contract: string, facts: BootFacts, timeoutMs: number): Promise<void> {
  const answer = await call(rpcUrl, contract, AUTHORITY.encodeFunctionData("isAppAllowed", [bootInfoOf(facts)]), timeoutMs);
  if (answer === "0x") throw new Malformed(`there is no allow-list contract at ${contract} on this chain`);
  let allowed: unknown, reason: unknown;
  try {
    [allowed, reason] = AUTHORITY.decodeFunctionResult("isAppAllowed", answer);
  } catch {
    throw new Malformed(`the contract at ${contract} is no allow-list`);
  }
  if (allowed !== true) throw new Malformed(`the contract does not allow this compose hash: ${String(reason) || "no reason given"}`);
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

async function call(rpcUrl: string, to: string, data: string, timeoutMs: number): Promise<string> {
  const request = new FetchRequest(rpcUrl);
  request.timeout = timeoutMs;
  request.setThrottleParams({ maxAttempts: 1 });
  const provider = new JsonRpcProvider(request, undefined, { staticNetwork: true, batchMaxCount: 1 });
  try {
    return await provider.send("eth_call", [{ to, data }, "latest"]).then(String);
  } catch (error) {
    if (isError(error, "CALL_EXCEPTION") || isError(error, "UNKNOWN_ERROR")) throw new Malformed(`the contract at ${to} refuses the question`);
    throw new Unavailable("the allow-list's chain could not be asked: its RPC endpoint gave no usable answer");
  } finally {
    provider.destroy();
  }
}
