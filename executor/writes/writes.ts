/**
 * The only way to a payer's signature. `authorizeWrites` checks each write against its credential and tags its
 * calldata; `signAsPayer` signs only tagged calls, again for every change of nonce or fees.
 */
import { createHmac, createSecretKey, timingSafeEqual, type KeyObject } from "node:crypto";
import { toBeHex } from "ethers";
import type { z } from "zod";
import { KeywrightError } from "../../protocol/errors";
import { pathKindFor, type AccountId, type Address, type Hash32 } from "../../protocol/ids";
import type {
  ContractWrite,
  ExecutorAnswer,
  executorErrorSchema,
  ExecutorRequest,
  TaggedCall,
} from "../../protocol/executor";
import { verifyTypedData, type TypedDataDomain } from "../../protocol/typedData";
import type { Callers } from "../access/callers";
import type { Keyring } from "../keys/keyring";
import { signDigest } from "../keys/secp256k1";
import { bytesOfHex } from "../../protocol/hex";
import { targetOf } from "../../protocol/budgets";
import { encodeBatch, encodeTryMulticall, encodeWrite, wordOf, type EncodedWrite } from "./calldata";
import type { GasGuard } from "./gas";
import { registrationIn, requireAllowed, ruleOf, type RuleFacts } from "./rules";
import { signTransaction } from "./transaction";
import { defined } from "../../protocol/defined";

export interface WriteOptions {
  /** The account of a key or account id, as the contract has it. */
  readonly accountOf: (id: Hash32) => Promise<AccountId | undefined>;
  readonly chainId: bigint;
  readonly contractAddress: Address;
  /** The calldata of a lease that this keyholder asked for. @throws KeywrightError for any other. */
  readonly leaseCalldata: (id: string) => string;
  readonly domain: TypedDataDomain;
  readonly gas: GasGuard;
  readonly maxTopUpWei: bigint;
  readonly nowSeconds?: () => number;
}

/** A transaction to sign, without its fees. */
export interface PayerCall {
  readonly to: Address;
  readonly value: bigint;
  readonly data: Buffer;
  readonly nonce: number;
  readonly gasLimit: bigint;
}
export type Fees = Pick<ExecutorRequest<"signNoop">, "maxFeePerGas" | "maxPriorityFeePerGas">;
type Signed = ExecutorAnswer<"signAsPayer">;
export type WriteToAuthorize = ExecutorRequest<"authorizeWrites">["writes"][number];

const ADMIN_PAYER = 0;
/**
 * The largest payer index the pool can have. Higher ones are refused, so that no further address is ever signed for.
 */
const MAX_PAYER = 1_024;
/**
 * A tag is valid for one to two periods: longer than a write can stay pending, too short to replay tags from an old
 * database.
 */
const TAG_PERIOD_SECONDS = 12 * 3_600;
const TRANSFER_GAS = 21_000n;
const NO_DATA = Buffer.alloc(0);

export class Writes {
  readonly #nowSeconds: () => number;
  readonly #keyring: Keyring;
  readonly #callers: Callers;
  readonly #options: WriteOptions;

  constructor(keyring: Keyring, callers: Callers, options: WriteOptions) {
    this.#keyring = keyring;
    this.#callers = callers;
    this.#options = options;
    this.#nowSeconds = options.nowSeconds ?? (() => Date.now() / 1000);
  }

  /** Independent of each other: a refused write is reported in its place of the answer. */
  async authorizeWrites({ writes }: ExecutorRequest<"authorizeWrites">): Promise<ExecutorAnswer<"authorizeWrites">> {
    const checked = await Promise.all(writes.map((write) => this.#check(write).catch(refusalOf)));
    return {
      writes: this.#withTagKey((key) => checked.map((one) => (typeof one === "string" ? this.#tagged(key, one) : one))),
    };
  }

  /** The write's calldata. @throws KeywrightError when the credential does not allow it; see rules.ts. */
  async #check({ credential, write, convert }: WriteToAuthorize): Promise<string> {
    if (credential.type === "lease") return this.#options.leaseCalldata(credential.id);
    const calls = innerCalls(write);
    const caller = await this.#callers.resolve(credential);
    const accounts = await this.#accountsOf(calls);
    const identity =
      convert !== undefined && "token" in convert ? await this.#callers.callerOfToken(convert.token) : undefined;
    const facts: RuleFacts = {
      isHandover: identity !== undefined,
      accountOf: (id) => accounts.get(id) ?? (id as AccountId),
      isUsageKey: (id) => accounts.has(id) && accounts.get(id) !== (id as AccountId),
      addressAt: (account, path) => this.#keyring.addressAt(account, path),
      consentingOwner: () => identity?.wallet() ?? this.#convertSigner(convert),
    };
    for (const call of calls) requireAllowed(call, caller, facts);
    return write.functionName === "multicall" ? encodeBatch(calls) : (calls[0]?.calldata ?? "0x");
  }

  /**
   * From the contract, the accounts of the ids of new accounts, and of usage keys that register a wallet: a path has
   * only half of the account's id. An account's own id needs no look-up there, since the address shows that the path is
   * one of it.
   */
  async #accountsOf(calls: readonly EncodedWrite[]): Promise<ReadonlyMap<Hash32, AccountId>> {
    const called = (name: string): EncodedWrite[] => calls.filter(({ functionName }) => functionName === name);
    const registrations = called("registerWalletDerivation").map(registrationIn);
    const registering = registrations.filter(({ id, path, address }) => {
      const isOfAccount = pathKindFor(path, id as AccountId) !== undefined;
      return !isOfAccount || this.#keyring.addressAt(id as AccountId, path) !== address;
    });
    const ids = [...registering.map(({ id }) => id), ...called("newAccount").map((call) => wordOf(call, 0))];
    const accounts = await Promise.all(ids.map(async (id) => [id, await this.#options.accountOf(id)] as const));
    return new Map(accounts.flatMap(([id, account]) => (account === undefined ? [] : [[id, account] as const])));
  }

  /**
   * Signs all calls in one transaction. @throws KeywrightError `not_authorized` when a call lacks a valid tag,
   * `invalid_value`.
   */
  signAsPayer({ payer, calls, nonce, gasLimit, ...fees }: ExecutorRequest<"signAsPayer">): Signed {
    const tagged = calls.map(({ calldata, tag }) => ({ calldata: bytesOfHex(calldata), tag: bytesOfHex(tag) }));
    this.#withTagKey((key) => tagged.forEach((call) => this.#requireTag(key, call)));
    const [only] = tagged;
    const data =
      tagged.length === 1 && only !== undefined
        ? only.calldata
        : encodeTryMulticall(tagged.map(({ calldata }) => calldata));
    const to = targetOf(data, this.#options.contractAddress);
    return this.signCall(payer, { to, value: 0n, data, nonce, gasLimit: BigInt(gasLimit) }, fees);
  }

  signNoop({ payer, nonce, ...fees }: ExecutorRequest<"signNoop">): Signed {
    return this.signCall(
      payer,
      { to: this.payerAddress(payer), value: 0n, data: NO_DATA, nonce, gasLimit: TRANSFER_GAS },
      fees,
    );
  }

  /** From the admin payer to another payer of the pool, at most MAX_TOP_UP_WEI. */
  signTopUp({ toPayer, amountWei, nonce, ...fees }: ExecutorRequest<"signTopUp">): Signed {
    const value = BigInt(amountWei);
    if (value > this.#options.maxTopUpWei)
      throw invalid(`A top-up is at most ${this.#options.maxTopUpWei} wei (MAX_TOP_UP_WEI).`);
    return this.signCall(
      ADMIN_PAYER,
      { to: this.payerAddress(toPayer), value, data: NO_DATA, nonce, gasLimit: TRANSFER_GAS },
      fees,
    );
  }

  payers({ count }: ExecutorRequest<"payers">): ExecutorAnswer<"payers"> {
    const lanes = Array.from({ length: count }, (_, index) => this.payerAddress(index + 1));
    return { adminPayer: this.payerAddress(ADMIN_PAYER), payers: lanes };
  }

  payerAddress(index: number): Address {
    requirePayer(index);
    return this.#keyring.payerAddress(index);
  }

  #convertSigner(convert: WriteToAuthorize["convert"]): Address {
    if (convert === undefined || "token" in convert)
      throw invalid("A conversion needs the new owner's ConvertAccount signature.");
    const expected = {
      primaryType: "ConvertAccount",
      domain: this.#options.domain,
      nowSeconds: this.#nowSeconds(),
    } as const;
    return verifyTypedData(convert.typed_data, convert.signature, expected);
  }

  /**
   * Derived once per request. A key object makes each tag four times as fast as the key's bytes; OpenSSL wipes its copy
   * when it is freed.
   */
  #withTagKey<T>(use: (key: KeyObject) => T): T {
    return this.#keyring.withTagKey((key) => use(createSecretKey(key)));
  }

  #tagged(key: KeyObject, calldata: string): TaggedCall {
    return { calldata, tag: `0x${this.#tagOf(key, bytesOfHex(calldata), this.#period()).toString("hex")}` };
  }

  /** Accepts tags of this period and the previous one: an older tag cannot be used to replay its write. */
  #requireTag(key: KeyObject, { calldata, tag }: { readonly calldata: Buffer; readonly tag: Buffer }): void {
    const now = this.#period();
    if ([now, now - 1].some((period) => timingSafeEqual(this.#tagOf(key, calldata, period), tag))) return;
    throw new KeywrightError(
      "not_authorized",
      "The tag is not that of this calldata, or older than a day: no credential allowed this write here.",
    );
  }

  #period(): number {
    return Math.floor(this.#nowSeconds() / TAG_PERIOD_SECONDS);
  }

  /** HMAC over chain id ‖ contract ‖ period ‖ calldata, so that a tag is invalid for any other chain or contract. */
  #tagOf(key: KeyObject, calldata: Buffer, period: number): Buffer {
    const { chainId, contractAddress } = this.#options;
    const where = [toBeHex(chainId, 32), contractAddress, toBeHex(period, 8)].map(bytesOfHex);
    return createHmac("sha256", key).update(Buffer.concat(where)).update(calldata).digest();
  }

  /**
   * Callers must have checked what is signed. @throws KeywrightError when a fee, the gas or the hour's budget is too
   * high.
   */
  signCall(payer: number, envelope: PayerCall, fees: Fees): Signed {
    requirePayer(payer);
    const prices = { maxFeePerGas: BigInt(fees.maxFeePerGas), maxPriorityFeePerGas: BigInt(fees.maxPriorityFeePerGas) };
    this.#options.gas.admit({ payer, nonce: envelope.nonce, gasLimit: envelope.gasLimit, ...prices });
    return signTransaction({ chainId: this.#options.chainId, ...envelope, ...prices }, (digest) =>
      this.#keyring.withPayer(payer, (secret) => signDigest(secret, digest)),
    );
  }
}

/** The calls of a write, one level deep. Unknown functions are refused before anything is encoded. */
function innerCalls(write: ContractWrite): EncodedWrite[] {
  const calls = "calls" in write ? write.calls : [write];
  for (const { functionName } of calls) ruleOf(functionName);
  return calls.map(encodeWrite);
}

function refusalOf(error: unknown): { refused: z.infer<typeof executorErrorSchema> } {
  if (!(error instanceof KeywrightError)) throw error;
  const { code, detail, facts, retryAfterSeconds } = error;
  return { refused: { code, detail, facts: { ...facts }, ...defined({ retryAfterSeconds }) } };
}

function requirePayer(index: number): void {
  if (!Number.isSafeInteger(index) || index < 0 || index > MAX_PAYER)
    throw invalid(`There are payers 0 to ${MAX_PAYER}.`);
}

function invalid(detail: string): KeywrightError {
  return new KeywrightError("invalid_value", detail);
}
