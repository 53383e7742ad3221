/** The header `X-Wallet-Auth`: authenticates the owner by a wallet signature. Source: docs/conformance.md §5. */
import { TypedDataEncoder, encodeBase64, toUtf8Bytes } from "ethers";
import type { Address } from "../protocol/ids";
import type { TypedDataDomain } from "../protocol/typedDataShape";
import { operations } from "./operations";
import type { TypedDataSigner } from "./ownerSigner";
import { createTransport, type TransportOptions } from "./transport";
import { signEnvelope } from "./wallet";
import type { Answer } from "./wire";

/** Well inside the 300 s for which the service accepts an envelope. */
const WALLET_AUTH_LIFE_MS = 200_000;

/** Returns the header's value, signed again before it expires. */
export type WalletAuth = () => Promise<string>;

/** How an owner that is a contract signs: for an EIP-712 digest, the bytes that its `isValidSignature` accepts. */
export type ContractSignature = (digest: string, chainId: bigint) => Promise<string>;

/** The header of an owner that is a contract (ERC-1271). The account has to be named beside it. */
export const createContractAuth = (owner: Address, sign: ContractSignature, domain: TypedDataDomain): WalletAuth =>
  createWalletAuth(
    {
      getAddress: async () => owner,
      signTypedData: async (...envelope) => sign(TypedDataEncoder.hash(...envelope), domain.chainId),
    },
    domain,
  );

export function createWalletAuth(signer: TypedDataSigner, domain: TypedDataDomain): WalletAuth {
  let signed: { readonly at: number; readonly header: Promise<string> } | undefined;
  const sign = async (): Promise<string> =>
    encodeBase64(toUtf8Bytes(JSON.stringify(await signEnvelope(signer, "BillingAuth", domain))));
  return async () => {
    if (signed === undefined || Date.now() - signed.at > WALLET_AUTH_LIFE_MS)
      signed = { at: Date.now(), header: sign() };
    try {
      return await signed.header;
    } catch (error) {
      signed = undefined;
      throw error;
    }
  };
}

/**
 * The account that a wallet owns; `accountId` selects one, needed where it owns several or was transferred the one it
 * owns.
 * @throws ClientError `account_not_found` when it owns none, `account_not_named` (with `facts.accounts`) when
 * `accountId` is needed.
 */
export async function ownedAccount(
  options: TransportOptions,
  walletAuth: WalletAuth,
  accountId?: string,
): Promise<Answer<"account">> {
  const named: Record<string, string> = accountId === undefined ? {} : { "x-account": accountId };
  const credential = async (): Promise<Record<string, string>> => ({ "x-wallet-auth": await walletAuth(), ...named });
  return operations(["account"], createTransport(options), credential).account();
}
