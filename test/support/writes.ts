/** The keyholder's writes with a root key of the test's own: two API keys, an identity's token, a scripted base fee. */
import type { Interface } from "ethers";
import { LeaseRequests } from "../../executor/budgets/requests";
import { Callers } from "../../executor/access/callers";
import type { IdentityVerifier } from "../../executor/access/identity";
import { Keyring } from "../../executor/keys/keyring";
import { GasGuard, type GasRules } from "../../executor/writes/gas";
import { Writes, type WriteToAuthorize } from "../../executor/writes/writes";
import { KeywrightError, type ErrorCode } from "../../protocol/errors";
import type { Credential, TaggedCall } from "../../protocol/executor";
import type { Address, ApiKey, Hash32 } from "../../protocol/ids";
import { AccountManager__factory } from "../../typechain-types";
import { DOMAIN } from "./typedData";

const NAMESPACE = `0x${"5a".repeat(32)}` as Hash32;
export const CONTRACT = "0x00000000000000000000000000000000000000C0" as Address;
export const NOW = 1_800_000_000;
export const ABI: Interface = AccountManager__factory.createInterface();
export const HOLDER = { issuer: "https://identity.example", subject: "holder" };
export const TOKEN = "a verified token";

export const keyring = new Keyring(Buffer.alloc(32, 7), NAMESPACE);
/** Tokens are tested elsewhere; here one is valid and authenticates HOLDER. */
const identities = {
  verify: (token: string) =>
    token === TOKEN ? Promise.resolve(HOLDER) : Promise.reject(new KeywrightError("invalid_identity_token", "no")),
} as unknown as IdentityVerifier;
export const guard = (rules: Partial<GasRules> = {}, baseFee = 0n): GasGuard =>
  new GasGuard({ maxFeePerGasWei: 100n, maxTipPerGasWei: 100n, maxWeiPerHour: 10n ** 18n, ...rules }, () =>
    Promise.resolve(baseFee),
  );
export const callers = new Callers(keyring, identities);
export const makeWrites = (overrides: Partial<ConstructorParameters<typeof Writes>[2]> = {}): Writes =>
  new Writes(keyring, callers, {
    chainId: 31_337n,
    contractAddress: CONTRACT,
    domain: DOMAIN,
    gas: guard(),
    leaseCalldata: (id) => new LeaseRequests().calldata(id),
    accountOf: () => Promise.resolve(undefined),
    maxTopUpWei: 1_000n,
    nowSeconds: () => NOW,
    ...overrides,
  });
export const writes = makeWrites();

/** A single write: its tagged call. Throws its refusal. */
export async function authorize(by: Writes, write: WriteToAuthorize): Promise<TaggedCall> {
  const [answer] = (await by.authorizeWrites({ writes: [write] })).writes;
  if (answer === undefined) throw new Error("no answer for the write");
  if (!("refused" in answer)) return answer;
  const { code, detail, facts } = answer.refused;
  throw new KeywrightError(code as ErrorCode, detail, facts);
}

const keyOf = (byte: number): ApiKey => Buffer.alloc(32, byte).toString("base64") as ApiKey;
export const MINE = keyOf(1);
export const THEIRS = keyOf(2);
export const credential = (key: string): Credential => ({ type: "key", key });
export const identity: Credential = { type: "identity", token: TOKEN };
