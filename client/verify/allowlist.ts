/** Asks the allow-list contract the question dstack's KMS asks before it gives an application its keys. */
import { Interface } from "ethers";
import { z } from "zod";
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

const answerSchema = z.object({ result: z.string().optional(), error: z.object({ code: z.number(), message: z.string() }).optional() });
const REVERTED = 3;

async function call(rpcUrl: string, to: string, data: string, timeoutMs: number): Promise<string> {
  const { result, error } = await post(rpcUrl, { jsonrpc: "2.0", id: 1, method: "eth_call", params: [{ to, data }, "latest"] }, timeoutMs);
  if (result !== undefined) return result;
  if (error !== undefined && (error.code === REVERTED || /revert/i.test(error.message))) throw new Malformed(`the contract at ${to} refuses the question`);
  throw new Unavailable(`the allow-list's chain could not be asked: ${error?.message ?? "its RPC endpoint gave no answer"}`);
}

async function post(rpcUrl: string, body: object, timeoutMs: number): Promise<z.infer<typeof answerSchema>> {
  try {
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal: AbortSignal.timeout(timeoutMs) };
    return answerSchema.parse(await (await fetch(rpcUrl, init)).json());
  } catch {
    throw new Unavailable("the allow-list's chain could not be asked: its RPC endpoint gave no usable answer");
  }
}
