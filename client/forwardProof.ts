/**
 * What the chain itself shows of a forward request: the forwarder that the contract trusts, the owner's next nonce, and
 * whether a transaction carried the request out. The service's word counts for none of it.
 */
import { Interface, type Result, type TransactionDescription } from "ethers";
import type { ForwardDomain, ForwardRequest } from "../protocol/forwardShape";
import type { Address } from "../protocol/ids";
import { ClientError } from "./errors";
import { readUntil } from "./lag";
import type { OwnerProvider, Receipt } from "./ownerSigner";
import { walletErrorOf } from "./wallet";

const CARRIED = "(address from, address to, uint256 value, uint256 gas, uint48 deadline, bytes data, bytes signature)";
const ABI = new Interface([
  "function trustedForwarder() view returns (address)",
  "function nonces(address owner) view returns (uint256)",
  `function execute(${CARRIED} request) payable`,
  `function executeBatch(${CARRIED}[] requests, address refundReceiver) payable`,
  "event ExecutedForwardRequest(address indexed signer, uint256 nonce, bool success)",
]);

/** A request as the forwarder's calldata has it; its nonce is the forwarder's next one of the signer. */
interface Carried {
  readonly from: string;
  readonly to: string;
  readonly value: bigint;
  readonly gas: bigint;
  readonly deadline: bigint;
  readonly data: string;
  readonly signature: string;
}

export interface ProofParts {
  readonly provider: OwnerProvider;
  readonly domain: ForwardDomain;
  readonly request: ForwardRequest;
  /** How long the provider may lag behind. */
  readonly withinMs: number;
}

/** @throws ClientError `wrong_chain` when the service names another forwarder than the one that the contract trusts. */
export async function requireTrusted(provider: OwnerProvider, contract: Address, named: Address): Promise<void> {
  const trusted = String(await ask(provider, contract, "trustedForwarder", []));
  if (isSame(trusted, named)) return;
  throw new ClientError(
    "wrong_chain",
    `The service names the forwarder ${named}; the contract ${contract} trusts ${trusted}. Nothing was signed.`,
  );
}

/**
 * The owner's next nonce on the chain. The service's serves only to notice that the node lags behind the owner's last
 * forward: then the node is asked again for a while.
 * @throws ClientError `unexpected_answer`
 */
export async function nextNonce(
  provider: OwnerProvider,
  forwarder: Address,
  { owner, said, withinMs }: { owner: Address; said: string; withinMs: number },
): Promise<string> {
  if (!/^[0-9]{1,78}$/.test(said))
    throw new ClientError("unexpected_answer", "The service's nonce of the owner is no number. Nothing was signed.");
  const read = async (): Promise<bigint> => BigInt(String(await ask(provider, forwarder, "nonces", [owner])));
  const nonce = await readUntil(read, (found) => found >= BigInt(said), withinMs);
  if (nonce >= BigInt(said)) return String(nonce);
  throw new ClientError(
    "unexpected_answer",
    `The service says that the owner's next nonce is ${said}; the chain shows ${nonce}. Nothing was signed: try ` +
      "again later if the wallet's node may lag behind.",
    { retryable: true, facts: { nonce: String(nonce) } },
  );
}

/**
 * Requires that the receipt's transaction carried out this very request: a log alone would also be there for another
 * call that the owner had signed for the same nonce.
 * @throws ClientError `transaction_failed`
 */
export async function requireCarriedOut(
  receipt: Receipt,
  { provider, domain, request, withinMs }: ProofParts,
): Promise<Receipt> {
  const facts = { transaction_hash: receipt.hash, nonce: request.nonce };
  const fail = (message: string): never => {
    throw new ClientError("transaction_failed", message, { facts });
  };
  const executed = executedIn(receipt, domain.verifyingContract, request.from);
  const at = executed.findIndex(({ nonce }) => nonce === request.nonce);
  if (at === -1) return fail("The service named a transaction that is not the owner's call.");
  const read = async () => (await provider.getTransaction?.(receipt.hash)) ?? null;
  const transaction = await readUntil(read, (found) => found !== null, withinMs).catch((cause: unknown) => {
    throw new ClientError("transaction_failed", UNREADABLE, { cause, facts });
  });
  if (transaction === null) return fail(UNREADABLE);
  const carried = carriedBy(transaction, domain.verifyingContract, request);
  if (carried.length !== executed.length || !isRequest(carried[at], request))
    return fail("The service named a transaction that is not the owner's call.");
  return executed[at]?.isSuccess === true ? receipt : fail("The service sent the call, and it was reverted.");
}
const UNREADABLE =
  "The service sent a transaction that the wallet's node does not show: look for its hash before sending again.";

/** The signer's requests that the forwarder executed, in their order. */
function executedIn({ logs }: Receipt, forwarder: Address, signer: Address) {
  return logs
    .filter(({ address }) => isSame(address, forwarder))
    .map((log) => ABI.parseLog(log))
    .filter((event) => event?.name === "ExecutedForwardRequest" && isSame(String(event.args["signer"]), signer))
    .map((event) => ({ nonce: String(event?.args["nonce"]), isSuccess: event?.args["success"] === true }));
}

/**
 * The signer's requests in the transaction's calldata, in their order: where they are as many as were executed, each
 * was executed in its turn, and no other one that is signed for the same nonce. None if one of the requests calls
 * another contract, which could call the forwarder in turn.
 */
function carriedBy(
  { to, data }: { readonly to: string | null; readonly data: string },
  forwarder: Address,
  request: ForwardRequest,
): readonly Carried[] {
  const carried = isSame(to ?? "", forwarder) ? requestsIn(data) : [];
  if (!carried.every((one) => isSame(one.to, request.to) && one.value === 0n)) return [];
  return carried.filter((one) => isSame(one.from, request.from));
}

const SIGNED = ["from", "to", "value", "gas", "deadline", "data"] as const;
const isRequest = (carried: Carried | undefined, request: ForwardRequest): boolean =>
  carried !== undefined && SIGNED.every((field) => isSame(String(carried[field]), request[field]));

/** Only calldata as the ABI encodes it: other bytes could mean something else on chain than here. */
function requestsIn(data: string): readonly Carried[] {
  try {
    const call = ABI.parseTransaction({ data });
    if (call === null || ABI.encodeFunctionData(call.fragment, call.args) !== data.toLowerCase()) return [];
    return requestsOf(call);
  } catch {
    return [];
  }
}

function requestsOf({ name, args }: TransactionDescription): readonly Carried[] {
  const found = (name === "execute" ? [args[0]] : [...(args[0] as Result)]) as readonly Result[];
  return found.map((one) => one.toObject() as unknown as Carried);
}

async function ask(provider: OwnerProvider, to: Address, name: string, args: unknown[]): Promise<unknown> {
  try {
    const answer = await provider.call({ to, data: ABI.encodeFunctionData(name, args) });
    return ABI.decodeFunctionResult(name, answer)[0];
  } catch (cause) {
    throw walletErrorOf(cause);
  }
}

const isSame = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();
