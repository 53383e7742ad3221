/**
 * Validates forward requests: form, signature, time, and that the call is one of the account contract that an owner may
 * make. Relayer and executor both run these checks; whether the contract accepts the call is decided on chain.
 */
import { AbiCoder, type Interface, Signature, TypedDataEncoder, recoverAddress, type Result } from "ethers";
import { z } from "zod";
import { ERC2771Forwarder__factory, AccountManager__factory } from "../typechain-types";
import { KeywrightError } from "./errors";
import { FORWARD_TYPES, type ForwardDomain, type ForwardRequest, type SignedForwardRequest } from "./forwardShape";
import { hash32FromUint, packedAccountId, parseAddress, type AccountId, type Address, type Hash32 } from "./ids";
import { isLowS, withUsualV } from "./typedData";

export * from "./forwardShape";

const address = z.string().transform((text, context) => {
  const parsed = parseAddress(text);
  if (parsed === undefined) context.addIssue({ code: "custom", message: "must be 0x and 40 hex digits" });
  return parsed ?? z.NEVER;
});
const decimal = z.string().regex(/^(0|[1-9][0-9]{0,77})$/, "must be a decimal number in a string");

export const signedForwardRequest = z.strictObject({
  from: address,
  to: address,
  value: decimal,
  gas: decimal,
  nonce: decimal,
  deadline: decimal,
  data: z.string().regex(/^0x([0-9a-fA-F]{2})*$/, "must be 0x and whole bytes in hex"),
  signature: z.string(),
});

const CONTRACT: Interface = AccountManager__factory.createInterface();
const FORWARDER = ERC2771Forwarder__factory.createInterface();

/** Upper limits of forwarded requests: a larger call must be the owner's own transaction. */
export const FORWARD_LIMITS = { gas: 8_000_000n, dataBytes: 65_536, deadlineSeconds: 86_400, innerCalls: 64 } as const;

/**
 * Functions that take an account's or key's id first and that an owner may call. Those of payers and the admin are not
 * forwarded.
 */
export const OWNER_FUNCTIONS: ReadonlySet<string> = new Set([
  "convertToChainSecuredAccount",
  "transferOwnership",
  "updateAccountMetadata",
  "setUsageApiKey",
  "updateUsageApiKeyMetadata",
  "removeUsageApiKey",
  "revokeAllUsageApiKeys",
  "setAccountFrozen",
  "registerWalletDerivation",
  "updatePkpMetadata",
  "setPkpOps",
  "addGroup",
  "updateGroup",
  "updateGroupMetadata",
  "removeGroup",
  "changeGroupMembers",
  "addActionToGroup",
  "removeActionFromGroup",
  "addPkpToGroup",
  "removePkpFromGroup",
  "addAction",
  "removeAction",
  "updateActionMetadata",
]);

export interface ForwardedCall {
  readonly functionName: string;
  readonly args: Result;
}

/** A validated request. */
export interface Forwarded {
  readonly request: SignedForwardRequest;
  /** The request's EIP-712 hash, its identifier. */
  readonly digest: Hash32;
  /** The calls, with `multicall` unpacked. */
  readonly calls: readonly ForwardedCall[];
  /** The account of the calls. */
  readonly accountId: AccountId;
  /** The calls create this account. */
  readonly createsAccount: boolean;
}

export interface ForwardRules {
  readonly contractAddress: Address;
  readonly domain: ForwardDomain;
  /**
   * Undefined where the time was checked before: a replacement with other fees may be signed after the deadline, and
   * the forwarder checks it as well.
   */
  readonly nowSeconds?: number;
}

/**
 * @throws KeywrightError `invalid_value` (form, target, value, limits), `request_expired`, `signature_malformed`,
 * `signature_mismatch` (also when signed for another chain, forwarder or nonce), `not_authorized` (a call that owners
 * do not make).
 */
export function checkForward(
  given: SignedForwardRequest,
  { contractAddress, domain, nowSeconds }: ForwardRules,
): Forwarded {
  const request = { ...given, signature: withUsualV(given.signature) };
  if (request.to !== contractAddress) throw invalid(`to must be the account contract ${contractAddress}.`);
  if (request.value !== "0") throw invalid("value must be 0: the account contract accepts no coin.");
  if (BigInt(request.gas) > FORWARD_LIMITS.gas) throw invalid(`gas is at most ${FORWARD_LIMITS.gas}.`);
  if ((request.data.length - 2) / 2 > FORWARD_LIMITS.dataBytes)
    throw invalid(`data has at most ${FORWARD_LIMITS.dataBytes} bytes.`);
  if (nowSeconds !== undefined) requireTime(BigInt(request.deadline), BigInt(Math.floor(nowSeconds)));
  const digest = requireSignature(request, domain);
  const calls = callsOf(request.data);
  return { request, digest, calls, ...accountOf(calls, request.from) };
}

const ENCODED = [
  "tuple(address from, address to, uint256 value, uint256 gas, uint256 nonce, uint48 " +
    "deadline, bytes data, bytes signature)",
];

/** ABI encoding of a request, for storage and transport. */
export const encodeForward = (request: SignedForwardRequest): string =>
  AbiCoder.defaultAbiCoder().encode(ENCODED, [request]);

/** @throws KeywrightError `invalid_value` if the bytes are not a request. */
export function decodeForward(bytes: string): SignedForwardRequest {
  try {
    const [request] = AbiCoder.defaultAbiCoder().decode(ENCODED, bytes) as unknown as [Result];
    const fields = request.toObject();
    const texts = Object.entries(fields).map(([name, value]) => [name, String(value)]);
    return signedForwardRequest.parse(Object.fromEntries(texts));
  } catch {
    throw invalid("these bytes are no forward request.");
  }
}

/** Calldata of the forwarder: one request alone, or a batch, of which the forwarder skips those that became invalid. */
export function forwarderCalldata(requests: readonly SignedForwardRequest[], payer: Address): string {
  const [only] = requests;
  if (requests.length === 1 && only !== undefined) return FORWARDER.encodeFunctionData("execute", [only]);
  return FORWARDER.encodeFunctionData("executeBatch", [[...requests], payer]);
}

function requireTime(deadline: bigint, now: bigint): void {
  if (deadline < now) throw new KeywrightError("request_expired", `deadline ${deadline} is past; it is ${now}.`);
  if (deadline > now + BigInt(FORWARD_LIMITS.deadlineSeconds))
    throw invalid(`deadline is at most ${FORWARD_LIMITS.deadlineSeconds} seconds from now (${now}).`);
}

/** The nonce is covered by the signature; the forwarder checks that it is the next one. */
function requireSignature(request: SignedForwardRequest, domain: ForwardDomain): Hash32 {
  const { signature, ...message } = request;
  if (!/^0x[0-9a-fA-F]{128}(1b|1c)$/i.test(signature) || !isLowS(signature)) {
    throw new KeywrightError(
      "signature_malformed",
      "signature must be 65 bytes in hex with v 27 or 28 (or 0 or 1) and s in the lower half of the order.",
    );
  }
  const digest = digestOf(message, domain);
  if (recovered(digest, signature) !== request.from) {
    throw new KeywrightError(
      "signature_mismatch",
      `the signature does not recover to ${request.from} under the domain "${domain.name}" of this chain ` +
        "and forwarder.",
    );
  }
  return digest;
}

/** The encoder refuses numbers that do not fit their type. */
function digestOf(message: ForwardRequest, domain: ForwardDomain): Hash32 {
  try {
    return TypedDataEncoder.hash({ ...domain }, FORWARD_TYPES, message) as Hash32;
  } catch {
    throw invalid("gas and nonce are below 2^256, deadline is below 2^48.");
  }
}

function recovered(digest: string, signature: string): string | undefined {
  try {
    return recoverAddress(digest, Signature.from(signature));
  } catch {
    return undefined;
  }
}

function callsOf(data: string): ForwardedCall[] {
  const outer = decode(data);
  if (outer.functionName !== "multicall") return [outer];
  const inner = [...(outer.args[0] as string[])];
  if (inner.length === 0 || inner.length > FORWARD_LIMITS.innerCalls)
    throw invalid(`a multicall has 1 to ${FORWARD_LIMITS.innerCalls} calls.`);
  return inner.map(decode);
}

/**
 * Only calldata as the contract's ABI encodes it: other bytes could mean something else here than on chain, where they
 * revert without a reason.
 */
function decode(data: string): ForwardedCall {
  try {
    const parsed = CONTRACT.parseTransaction({ data });
    if (parsed !== null && CONTRACT.encodeFunctionData(parsed.fragment, parsed.args) === data.toLowerCase())
      return { functionName: parsed.name, args: parsed.args };
  } catch {
    // Falls through to the one answer for data that is no call of the contract.
  }
  throw invalid("data must be calldata of a function of the account contract, as its ABI encodes it.");
}

/** All calls must be about one account: the one they name, or the one that the first call creates. */
function accountOf(calls: readonly ForwardedCall[], signer: Address): Pick<Forwarded, "accountId" | "createsAccount"> {
  const [first, ...rest] = calls;
  const createsAccount = first?.functionName === "newChainSecuredAccount";
  const own = packedAccountId(signer);
  const about = (createsAccount ? rest : calls).map(accountNamed);
  const accountId = createsAccount ? own : (about[0] ?? own);
  if (about.some((id) => id !== accountId)) throw invalid("all calls of a request must be about one account.");
  return { accountId, createsAccount };
}

function accountNamed({ functionName, args }: ForwardedCall): AccountId {
  if (!OWNER_FUNCTIONS.has(functionName))
    throw new KeywrightError(
      "not_authorized",
      `${functionName} is not forwarded: it is no call of an account's owner.`,
    );
  return hash32FromUint(args[0] as bigint) as AccountId;
}

function invalid(detail: string): KeywrightError {
  return new KeywrightError("invalid_value", detail);
}
