/**
 * What a node's refusal means. Nodes agree on codes only in part, so their words are read; each spelling here is one that some kind of node uses.
 * An error about a nonce or about gas is about our transaction and never a mark against the endpoint.
 */
export type RpcFailure =
  /** No usable answer: time-out, refused connection, 5xx, not JSON. A sent transaction may have been taken. */
  | "transport"
  | "rate_limited"
  /** The endpoint does not have the block asked for (yet). */
  | "stale"
  | "reverted"
  | "already_known"
  | "nonce_too_low"
  | "nonce_too_high"
  | "underpriced"
  | "insufficient_funds"
  | "pool_full"
  | "needs_too_much_gas"
  /** The node says no, and would again. */
  | "refused";

export class RpcError extends Error {
  override readonly name = "RpcError";
  constructor(
    readonly failure: RpcFailure,
    message: string,
    /** Revert data, if the node gave some. */
    readonly data?: string,
  ) {
    super(message);
  }
}

const SPELLINGS: readonly (readonly [RpcFailure, RegExp])[] = [
  [
    "already_known",
    /already known|known transaction|already imported|alreadyknown|already exists|already in (the )?(mem)?pool|transaction already|tx already in/i,
  ],
  [
    "underpriced",
    /underpriced|replacement.*(fee|gas price|allowed)|fee too low to (replace|compete)|max fee per gas less than block base fee|could not replace/i,
  ],
  [
    "nonce_too_high",
    /nonce (is )?too high|nonce gap|gapped.nonce|nonce.*too far|exceeds.*nonce|queued sub.?pool|future transaction|can't be queued|nonce.*greater than/i,
  ],
  [
    "nonce_too_low",
    /nonce (is )?too low|nonce.*already (been )?used|old ?nonce|nonce.*has already|invalid transaction nonce|tx nonce.*lower|nonce too small|expected nonce/i,
  ],
  ["insufficient_funds", /insufficient funds|insufficient balance|not enough (balance|funds|eth)|doesn't have enough funds|upfront cost|lack of funds/i],
  ["pool_full", /(tx|transaction|mem) ?pool is full|pool (is )?full|pool limit|too many pending|exceeds.*in-?flight|account limit|txpool.*overflow/i],
  [
    "needs_too_much_gas",
    /gas required exceeds|exceeds block gas limit|block gas limit|intrinsic gas|out of gas|gas limit (too|is) (high|low)|exceeds.*gas ?(limit|cap)|exceeds the limit/i,
  ],
  ["reverted", /execution reverted|\brevert(ed)?\b|vm exception/i],
  [
    "stale",
    /header not found|unknown block|block not found|missing trie node|block.*(out of range|not available|does not exist)|blockoutofrange|no state available|beyond.*head/i,
  ],
  ["rate_limited", /rate limit|too many requests|limit exceeded|quota|capacity|compute units|throttl/i],
];

/** Reads the error object of a JSON-RPC answer. */
export function classifyRpcError(error: unknown): RpcError {
  const { code, message } = shapeOf(error);
  const data = revertDataIn(error);
  if (data !== undefined && data.length > 2) return new RpcError("reverted", message, data);
  const spelled = SPELLINGS.find(([, pattern]) => pattern.test(message))?.[0];
  if (spelled !== undefined) return new RpcError(spelled, message, data);
  if (code === 3) return new RpcError("reverted", message, data);
  if (code === -32005 || code === 429) return new RpcError("rate_limited", message);
  // -32603 "internal error" and the like without a word we know: this node cannot answer, another may.
  if (code === -32603 || code === -32000) return new RpcError("stale", message);
  return new RpcError("refused", message);
}

/** Marks the endpoint as bad for a while; everything else says nothing about it. */
export const blamesEndpoint = (failure: RpcFailure): boolean => failure === "transport" || failure === "rate_limited";

/** The chain's own answer to a read: every endpoint would give it. Other refusals of a read say something about the endpoint that makes them. */
export const isAboutTheCall = (failure: RpcFailure): boolean => failure === "reverted" || failure === "needs_too_much_gas";

/** Worth asking another endpoint: this one could not answer. */
export const mayAnswerElsewhere = (failure: RpcFailure): boolean => blamesEndpoint(failure) || failure === "stale";

function shapeOf(error: unknown): { code: number | undefined; message: string } {
  if (typeof error !== "object" || error === null) return { code: undefined, message: String(error) };
  const { code, message } = error as { code?: unknown; message?: unknown };
  return { code: typeof code === "number" ? code : undefined, message: typeof message === "string" ? message : "no message" };
}

const HEX_DATA = /^0x([0-9a-fA-F]{2})*$/;

/** Nodes put revert data in `data`, in `data.data`, in `data.originalError.data`, or behind the word "Reverted". */
function revertDataIn(error: unknown, depth = 0): string | undefined {
  if (typeof error !== "object" || error === null || depth > 4) return undefined;
  const { data, originalError } = error as { data?: unknown; originalError?: unknown };
  if (typeof data === "string") {
    const text = data.replace(/^Reverted /, "");
    return HEX_DATA.test(text) ? text : undefined;
  }
  return revertDataIn(data, depth + 1) ?? revertDataIn(originalError, depth + 1);
}
