/**
 * Classifies a node's errors. Nodes agree on codes only in part, so messages are matched; each spelling is used by some
 * node. An error about nonce or gas concerns the transaction and does not count against the endpoint.
 */
export type RpcFailure =
  /** No usable answer: time-out, refused connection, 5xx, not JSON. A sent transaction may still have been accepted. */
  | "transport"
  | "rate_limited"
  /** It serves another chain, or one without a block that is final on ours. */
  | "other_chain"
  /** The endpoint does not have the requested block (yet). */
  | "stale"
  | "reverted"
  | "already_known"
  | "nonce_too_low"
  | "nonce_too_high"
  | "underpriced"
  | "insufficient_funds"
  | "pool_full"
  | "needs_too_much_gas"
  /** The node refuses and would refuse again. */
  | "refused";

export class RpcError extends Error {
  override readonly name = "RpcError";
  constructor(
    readonly failure: RpcFailure,
    message: string,
    /** Revert data, if the node returned any. */
    readonly data?: string,
  ) {
    super(message);
  }
}

const SPELLINGS: readonly (readonly [RpcFailure, ...RegExp[]])[] = [
  [
    "already_known",
    /already known|known transaction|already imported|alreadyknown|already exists/i,
    /already in (the )?(mem)?pool|transaction already|tx already in/i,
  ],
  [
    "underpriced",
    /underpriced|replacement.*(fee|gas price|allowed)|fee too low to (replace|compete)/i,
    /max fee per gas less than block base fee|could not replace/i,
  ],
  [
    "nonce_too_high",
    /nonce (is )?too high|nonce gap|gapped.nonce|nonce.*too far|exceeds.*nonce|nonce.*greater than/i,
    /queued sub.?pool|future transaction|can't be queued/i,
  ],
  [
    "nonce_too_low",
    /nonce (is )?too low|nonce.*already (been )?used|old ?nonce|nonce.*has already/i,
    /invalid transaction nonce|tx nonce.*lower|nonce too small|expected nonce/i,
  ],
  [
    "insufficient_funds",
    /insufficient funds|insufficient balance|not enough (balance|funds|eth)|doesn't have enough funds/i,
    /upfront cost|lack of funds/i,
  ],
  [
    "pool_full",
    /(tx|transaction|mem) ?pool is full|pool (is )?full|pool limit|txpool.*overflow/i,
    /too many pending|exceeds.*in-?flight|account limit/i,
  ],
  [
    "needs_too_much_gas",
    /gas required exceeds|exceeds block gas limit|block gas limit|intrinsic gas|(out ?of ?|memory ?oo)g(as)?\b/i,
    /gas limit (too|is) (high|low)|exceeds.*gas ?(limit|cap)|exceeds the limit/i,
  ],
  // The called code broke off.
  [
    "reverted",
    /execution reverted|\brevert(ed)?\b|vm exception/i,
    /invalid ?(\w*opcode|jump)|opcode ?not ?found|stack ?(under|over)flow|return data out of bounds/i,
  ],
  [
    "stale",
    /header not found|unknown block|block not found|missing trie node|blockoutofrange|no state available/i,
    /block.*(out of range|not available|does not exist)|beyond.*head/i,
  ],
  ["rate_limited", /rate limit|too many requests|limit exceeded|quota|capacity|compute units|throttl/i],
];

/** Classifies the error object of a JSON-RPC answer. */
export function classifyRpcError(error: unknown): RpcError {
  const { code, message } = shapeOf(error);
  const data = revertDataIn(error);
  if (data !== undefined && data.length > 2) return new RpcError("reverted", message, data);
  const spelled = SPELLINGS.find(([, ...patterns]) => patterns.some((pattern) => pattern.test(message)))?.[0];
  if (spelled !== undefined) return new RpcError(spelled, message, data);
  if (code === 3) return new RpcError("reverted", message, data);
  if (code === -32005 || code === 429) return new RpcError("rate_limited", message);
  // -32603 "internal error" and similar without a known message: this node cannot answer, another may.
  if (code === -32603 || code === -32000) return new RpcError("stale", message);
  return new RpcError("refused", message);
}

/** The endpoint is avoided for a while; other failures say nothing about it. */
export const countsAgainstEndpoint = (failure: RpcFailure): boolean =>
  failure === "transport" || failure === "rate_limited" || failure === "other_chain";

/**
 * The answer to a read, and no failure of the endpoint to give one. That of the chain itself is the same from every
 * endpoint; what `lacksGas` is not.
 */
export const isAboutTheCall = (failure: RpcFailure): boolean =>
  failure === "reverted" || failure === "needs_too_much_gas";

/**
 * The call needs more gas than this endpoint gives one. A contract that another one called and that had none left is
 * reported as a revert that says nothing.
 */
export const lacksGas = ({ failure, data = "0x" }: RpcError): boolean =>
  failure === "needs_too_much_gas" || (failure === "reverted" && data === "0x");

/** Another endpoint may be able to answer. */
export const mayAnswerElsewhere = (failure: RpcFailure): boolean =>
  countsAgainstEndpoint(failure) || failure === "stale";

/** What says the reason stands at the front; the spellings take the square of a message's length. */
const MAX_MESSAGE_CHARS = 500;

function shapeOf(error: unknown): { code: number | undefined; message: string } {
  if (typeof error !== "object" || error === null) return { code: undefined, message: String(error) };
  const { code, message } = error as { code?: unknown; message?: unknown };
  return {
    code: typeof code === "number" ? code : undefined,
    message: typeof message === "string" ? message.slice(0, MAX_MESSAGE_CHARS) : "no message",
  };
}

const HEX_DATA = /^0x([0-9a-fA-F]{2})*$/;

/** Nodes return revert data in `data`, `data.data`, `data.originalError.data`, or after the word "Reverted". */
function revertDataIn(error: unknown, depth = 0): string | undefined {
  if (typeof error !== "object" || error === null || depth > 4) return undefined;
  const { data, originalError } = error as { data?: unknown; originalError?: unknown };
  if (typeof data === "string") {
    const text = data.replace(/^Reverted /, "");
    return HEX_DATA.test(text) ? text : undefined;
  }
  return revertDataIn(data, depth + 1) ?? revertDataIn(originalError, depth + 1);
}
