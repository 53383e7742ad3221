/**
 * Chain reads over RPC endpoints: the user's own, one of which suffices, or public ones, of which several must agree.
 * One that fails or throttles is asked again after a pause, and meanwhile the next.
 */
import { z } from "zod";
import { Unavailable } from "./material";
import { Malformed } from "./types";

export interface Endpoints {
  readonly urls: readonly string[];
  /** How many must give the same answer. */
  readonly agreeing: number;
  /** Per request. */
  readonly timeoutMs: number;
}

/** Of these chains, in the order in which they are asked. By different operators; none needs an account. */
const PUBLIC_ENDPOINTS: Readonly<Record<string, readonly string[]>> = {
  "1": ["https://ethereum-rpc.publicnode.com", "https://eth.drpc.org", "https://1rpc.io/eth"],
  "10": ["https://mainnet.optimism.io", "https://optimism-rpc.publicnode.com", "https://optimism.drpc.org"],
  "137": ["https://polygon-bor-rpc.publicnode.com", "https://polygon.drpc.org", "https://1rpc.io/matic"],
  "8453": ["https://mainnet.base.org", "https://base-rpc.publicnode.com", "https://base.drpc.org"],
  "42161": ["https://arb1.arbitrum.io/rpc", "https://arbitrum-one-rpc.publicnode.com", "https://arbitrum.drpc.org"],
  "84532": ["https://sepolia.base.org", "https://base-sepolia-rpc.publicnode.com", "https://base-sepolia.drpc.org"],
  "421614": ["https://sepolia-rollup.arbitrum.io/rpc", "https://arbitrum-sepolia-rpc.publicnode.com"],
  "11155111": ["https://ethereum-sepolia-rpc.publicnode.com", "https://sepolia.drpc.org", "https://1rpc.io/sepolia"],
};
/** A single public endpoint could grant anything. */
const PUBLIC_AGREEING = 2;

const ROUNDS = 4;
const FIRST_PAUSE_MS = 400;
const MAX_PAUSE_MS = 5_000;
const REVERTED = 3;

const answerSchema = z.object({
  result: z
    .string()
    .regex(/^0x[0-9a-fA-F]*$/)
    .optional(),
  error: z.object({ code: z.number(), message: z.string() }).optional(),
});

/** The user's endpoints; without any the public ones of the chain, or none. */
export function endpointsFor(
  own: readonly string[],
  chainId: number | undefined,
  timeoutMs: number,
): Endpoints | undefined {
  if (own.length > 0) return { urls: own, agreeing: 1, timeoutMs };
  const urls = PUBLIC_ENDPOINTS[String(chainId)];
  return urls === undefined ? undefined : { urls, agreeing: PUBLIC_AGREEING, timeoutMs };
}

/**
 * Returns a call's result as hex. Throws Malformed when the contract reverts, Unavailable when it cannot be queried or
 * the endpoints are of another chain. `chain` names the chain in errors.
 */
export async function ethCall(
  endpoints: Endpoints,
  { chain, chainId, to, data }: { chain: string; chainId?: number | undefined; to: string; data: string },
): Promise<string> {
  const answer = await agreed(endpoints, chain, async (url) => {
    if (chainId !== undefined) await requireChain(url, endpoints.timeoutMs, chainId);
    return post(url, endpoints.timeoutMs, "eth_call", [{ to, data }, "latest"]);
  });
  if (answer === "reverted") throw new Malformed(`the contract at ${to} refuses the call`);
  return answer;
}

async function requireChain(url: string, timeoutMs: number, expected: number): Promise<void> {
  const actual = await post(url, timeoutMs, "eth_chainId", []);
  if (Number(actual) !== expected)
    throw new Failed(
      `the RPC endpoint is of chain ${Number(actual)}, the contract is on chain ${expected}`,
      "of another chain",
    );
}

/** Why an endpoint gave no usable answer. */
class Failed extends Error {
  constructor(
    message: string,
    readonly kind: "busy" | "unreachable" | "of another chain",
    /** As it asks for. */
    readonly pauseMs = 0,
  ) {
    super(message);
  }

  /** One that does not even answer is tried once more, one of another chain never. */
  mayBeAskedAfter(round: number): boolean {
    return this.kind === "busy" || (this.kind === "unreachable" && round === 0);
  }
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Asks endpoint after endpoint, and those that failed again after growing pauses, until enough say the same. */
async function agreed(
  { urls, agreeing }: Endpoints,
  chain: string,
  ask: (url: string) => Promise<string>,
): Promise<string> {
  const votes = new Map<string, number>();
  let failures: readonly { readonly url: string; readonly failed: Failed }[] = [];
  for (let round = 0, open = urls; round < ROUNDS && open.length > 0; round++) {
    if (round > 0) await sleep(pauseBefore(round, failures));
    failures = [];
    for (const url of open) {
      const answer = await ask(url).catch(failedOnly);
      if (answer instanceof Failed) {
        failures = [...failures, { url, failed: answer }];
        continue;
      }
      const count = (votes.get(answer) ?? 0) + 1;
      if (count >= agreeing) return answer;
      votes.set(answer, count);
    }
    open = failures.filter(({ failed }) => failed.mayBeAskedAfter(round)).map(({ url }) => url);
  }
  if (votes.size > 1) throw new Unavailable(`${chain} could not be queried: the RPC endpoints contradict each other`);
  if (votes.size === 1) throw new Unavailable(`${chain} could not be queried: ${agreeing} RPC endpoints must agree`);
  throw new Unavailable(`${chain} could not be queried: ${failures.at(-1)?.failed.message ?? "no endpoint answered"}`);
}

/** Growing, at least as long as an endpoint asked for, and not the same for everyone. */
function pauseBefore(round: number, failures: readonly { readonly failed: Failed }[]): number {
  const asked = failures.map(({ failed }) => failed.pauseMs);
  return Math.min(MAX_PAUSE_MS, Math.max(FIRST_PAUSE_MS * 2 ** (round - 1), ...asked)) * (1 + Math.random() / 2);
}

function failedOnly(error: unknown): Failed {
  if (error instanceof Failed) return error;
  throw error;
}

/** The result, or `reverted`. @throws Failed. */
async function post(url: string, timeoutMs: number, method: string, params: readonly unknown[]): Promise<string> {
  const init = {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    signal: AbortSignal.timeout(timeoutMs),
  };
  const response = await fetch(url, init).catch(() => undefined);
  const { result, error } = answerSchema.safeParse(await response?.json().catch(() => undefined)).data ?? {};
  if (result !== undefined) return result;
  if (error !== undefined && (error.code === REVERTED || /revert/i.test(error.message))) return "reverted";
  const waitSeconds = Number(response?.headers.get("retry-after") ?? 0);
  throw new Failed(
    error?.message ?? "its RPC endpoint gave no usable answer",
    response === undefined ? "unreachable" : "busy",
    Number.isFinite(waitSeconds) ? waitSeconds * 1_000 : 0,
  );
}
