/**
 * Forward requests: calls that an owner signed and a payer sends through the forwarder. The owner's signature is the
 * permission, and it is checked here before a payer signs: a compromised relayer can send only what owners signed.
 * Owners who sign in with an identity have no wallet; their requests are signed here for the bearer of the identity's
 * token.
 */
import { TypedDataEncoder, getBytes } from "ethers";
import { KeywrightError } from "../../protocol/errors";
import type { ExecutorAnswer, ExecutorRequest } from "../../protocol/executor";
import { bytesOfHex } from "../../protocol/hex";
import { FORWARD_TYPES, checkForward, decodeForward, encodeForward, forwarderCalldata } from "../../protocol/forward";
import type { ForwardDomain, ForwardRequest, SignedForwardRequest } from "../../protocol/forward";
import type { Address } from "../../protocol/ids";
import type { Callers } from "../access/callers";
import type { Keyring } from "../keys/keyring";
import { serializeSignature, signDigest } from "../keys/secp256k1";
import { encodeBatch, encodeWrite } from "./calldata";
import type { PayerCall, Writes } from "./writes";

/** How long a request signed for an identity may be carried out. */
const MAX_DEADLINE_SECONDS = 900;

export interface ForwardOptions {
  readonly contractAddress: Address;
  /** Read from the contract once: its trusted forwarder is immutable. */
  readonly domain: () => Promise<ForwardDomain>;
  readonly nowSeconds?: () => number;
}

export class Forwards {
  readonly #nowSeconds: () => number;
  readonly #keyring: Keyring;
  readonly #callers: Callers;
  readonly #writes: Pick<Writes, "payerAddress" | "signCall">;
  readonly #options: ForwardOptions;

  constructor(
    keyring: Keyring,
    callers: Callers,
    writes: Pick<Writes, "payerAddress" | "signCall">,
    options: ForwardOptions,
  ) {
    this.#keyring = keyring;
    this.#callers = callers;
    this.#writes = writes;
    this.#options = options;
    this.#nowSeconds = options.nowSeconds ?? (() => Date.now() / 1000);
  }

  /** @throws KeywrightError as `checkForward` throws, for the first invalid request; `chain_unavailable`. */
  async signForwards({
    payer,
    forwards,
    nonce,
    gasLimit,
    ...fees
  }: ExecutorRequest<"signForwards">): Promise<ExecutorAnswer<"signForwards">> {
    const domain = await this.#options.domain();
    const requests = forwards.map(decodeForward);
    for (const request of requests) checkForward(request, { contractAddress: this.#options.contractAddress, domain });
    const data = bytesOfHex(forwarderCalldata(requests, this.#writes.payerAddress(payer)));
    const call: PayerCall = { to: domain.verifyingContract, value: 0n, data, nonce, gasLimit: BigInt(gasLimit) };
    return this.#writes.signCall(payer, call, fees);
  }

  /** @throws KeywrightError `invalid_identity_token`, `identity_provider_unavailable`, or as `checkForward` throws. */
  async signOfIdentity(
    asked: ExecutorRequest<"signForwardOfIdentity">,
  ): Promise<ExecutorAnswer<"signForwardOfIdentity">> {
    const { token, write, gas, forwarderNonce, deadline } = asked;
    const domain = await this.#options.domain();
    const caller = await this.#callers.callerOfToken(token);
    const calls = ("calls" in write ? write.calls : [write]).map(encodeWrite);
    const data = "calls" in write ? encodeBatch(calls) : (calls[0]?.calldata ?? "0x");
    // A request that is signed ahead would outlive the token that it was signed for.
    if (BigInt(deadline) > BigInt(Math.floor(this.#nowSeconds()) + MAX_DEADLINE_SECONDS))
      throw new KeywrightError("invalid_value", `deadline is at most ${MAX_DEADLINE_SECONDS} seconds from now.`);
    const request: ForwardRequest = {
      from: caller.wallet(),
      to: this.#options.contractAddress,
      value: "0",
      gas,
      nonce: forwarderNonce,
      deadline,
      data,
    };
    const signed: SignedForwardRequest = { ...request, signature: this.#sign(caller, domain, request) };
    checkForward(signed, { contractAddress: this.#options.contractAddress, domain, nowSeconds: this.#nowSeconds() });
    return { forward: encodeForward(signed) };
  }

  #sign(
    { issuer, subject }: { issuer: string; subject: string },
    domain: ForwardDomain,
    request: ForwardRequest,
  ): string {
    const digest = TypedDataEncoder.hash({ ...domain }, FORWARD_TYPES, request);
    return this.#keyring.withOwner(issuer, subject, (secret) =>
      serializeSignature(signDigest(secret, getBytes(digest))),
    );
  }
}
