/** Signed typed data as a wallet makes it. */
import type { TypedDataDomain, Wallet } from "ethers";
import type { Address } from "../../protocol/ids";
import { buildTypedData, type PrimaryType } from "../../protocol/typedData";

export const DOMAIN = { name: "Keywright ChainSecured", version: "1", chainId: 31_337n } as const;

interface Signer {
  readonly address: string;
  readonly signTypedData: Wallet["signTypedData"];
}

export async function envelope(
  wallet: Signer,
  primaryType: PrimaryType,
  issuedAt = Math.floor(Date.now() / 1000),
): Promise<{ typed_data: unknown; signature: string }> {
  const typedData = buildTypedData(primaryType, DOMAIN, wallet.address as Address, issuedAt);
  const { EIP712Domain: _domain, ...types } = typedData.types;
  return {
    typed_data: typedData,
    signature: await wallet.signTypedData(
      typedData.domain,
      types as Record<string, { name: string; type: string }[]>,
      typedData.message,
    ),
  };
}

/** The consent of an account's new owner, written without the service's own code; `signer` may be another wallet. */
export async function signedConversion(
  domain: TypedDataDomain,
  newOwner: string,
  signer: Pick<Signer, "signTypedData">,
): Promise<{ typed_data: unknown; signature: string }> {
  const types = {
    ConvertAccount: [
      { name: "address", type: "address" },
      { name: "issuedAt", type: "uint256" },
    ],
  };
  const domainFields = [
    { name: "name", type: "string" },
    { name: "version", type: "string" },
    { name: "chainId", type: "uint256" },
  ];
  const message = { address: newOwner, issuedAt: String(Math.floor(Date.now() / 1000)) };
  const typed_data = {
    types: { EIP712Domain: domainFields, ...types },
    primaryType: "ConvertAccount",
    domain,
    message,
  };
  return { typed_data, signature: await signer.signTypedData(domain, types, message) };
}
