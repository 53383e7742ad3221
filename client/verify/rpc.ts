/** Chain reads over an RPC endpoint that the verifying user trusts. */
import { z } from "zod";
import { Unavailable } from "./material";
import { Malformed } from "./types";

export interface Endpoint {
  readonly rpcUrl: string;
  readonly timeoutMs: number;
  /** The chain's name in errors. */
  readonly chain: string;
}

const answerSchema = z.object({
  result: z.string().optional(),
  error: z.object({ code: z.number(), message: z.string() }).optional(),
});
const REVERTED = 3;

/**
 * Returns a call's result as hex. Throws Malformed when the contract reverts, Unavailable when it cannot be queried.
 */
export async function ethCall(endpoint: Endpoint, to: string, data: string): Promise<string> {
  return ask(endpoint, "eth_call", [{ to, data }, "latest"], `the contract at ${to} refuses the call`);
}

/** The endpoint's chain id. */
export async function chainIdOf(endpoint: Endpoint): Promise<bigint> {
  const answer = await ask(endpoint, "eth_chainId", [], "the endpoint refuses to name its chain");
  if (!/^0x[0-9a-f]{1,16}$/i.test(answer))
    throw new Unavailable(`${endpoint.chain} could not be queried: its RPC endpoint returned no chain id`);
  return BigInt(answer);
}

async function ask(endpoint: Endpoint, method: string, params: readonly unknown[], refused: string): Promise<string> {
  const { result, error } = await post(endpoint, { jsonrpc: "2.0", id: 1, method, params });
  if (result !== undefined) return result;
  if (error !== undefined && (error.code === REVERTED || /revert/i.test(error.message))) throw new Malformed(refused);
  throw new Unavailable(
    `${endpoint.chain} could not be queried: ${error?.message ?? "its RPC endpoint gave no answer"}`,
  );
}

async function post({ rpcUrl, timeoutMs, chain }: Endpoint, body: object): Promise<z.infer<typeof answerSchema>> {
  try {
    const init = {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs),
    };
    return answerSchema.parse(await (await fetch(rpcUrl, init)).json());
  } catch {
    throw new Unavailable(`${chain} could not be queried: its RPC endpoint gave no usable answer`);
  }
}
