/** Who pays: a key, or the owner's wallet. Either lives in this page's memory and nowhere else. */
import type { Address } from "../../../protocol/ids";
import { buildTypedData, type TypedDataDomain } from "../../../protocol/typedDataShape";
import { Failure, reach } from "./failures";

/** The headers that say who asks; a wallet may have to sign again for them. */
export type Credentials = () => Promise<Record<string, string>>;

export function keyCredentials(key: string): Credentials {
  return async () => ({ Authorization: `Bearer ${key}` });
}

/** As wallets offer themselves to pages (EIP-1193). */
interface WalletProvider {
  request(call: { method: string; params?: unknown[] }): Promise<unknown>;
}
declare global {
  interface Window {
    ethereum?: WalletProvider;
  }
}

export const hasWallet = (): boolean => window.ethereum !== undefined;

/** The service takes a signature for five minutes; after four a new one is asked for. */
const SIGNATURE_SECONDS = 240;

export async function walletCredentials(): Promise<Credentials> {
  const wallet = window.ethereum;
  if (wallet === undefined) throw new Failure("This browser has no wallet.", "no_wallet");
  const [address] = (await asking(wallet, "eth_requestAccounts")) as Address[];
  if (address === undefined) throw new Failure("The wallet gave no address.", "no_wallet");
  const domain = await domainOf();
  let signed: { readonly header: string; readonly until: number } | undefined;
  return async () => {
    const now = Math.floor(Date.now() / 1000);
    if (signed === undefined || now > signed.until) signed = { header: await sign(wallet, domain, address, now), until: now + SIGNATURE_SECONDS };
    return { "X-Wallet-Auth": signed.header };
  };
}

async function domainOf(): Promise<TypedDataDomain> {
  const answer = await reach("/core/v1/get_node_chain_config", {});
  const { typed_data_domain: domain } = (await answer.json()) as { typed_data_domain: { name: string; version: "1"; chainId: number | string } };
  return { ...domain, chainId: BigInt(domain.chainId) };
}

async function sign(wallet: WalletProvider, domain: TypedDataDomain, address: Address, nowSeconds: number): Promise<string> {
  const typedData = buildTypedData("BillingAuth", domain, address, nowSeconds);
  const signature = await asking(wallet, "eth_signTypedData_v4", [address, JSON.stringify(typedData)]);
  return btoa(JSON.stringify({ typed_data: typedData, signature }));
}

async function asking(wallet: WalletProvider, method: string, params: unknown[] = []): Promise<unknown> {
  try {
    return await wallet.request({ method, params });
  } catch (error) {
    throw new Failure(`The wallet did not agree: ${(error as { message?: string }).message ?? "no reason given"}`, "wallet_refused");
  }
}
