/** Browser wallets: connects them, switches them to the service's chain, and makes the owner's client. */
import { BrowserProvider, getAddress, type JsonRpcSigner } from "ethers";
import {
  ClientError,
  convertAccount,
  createChainSecuredClient,
  createWalletAuth,
  ownedAccount,
  type ChainSecuredClient,
  type WalletAuth,
} from "../../client";
import { onTransactionSent } from "../changes/sending";
import { short } from "../components/text";
import type { Account, ChainConfig, ConnectedWallet, Connection, FoundWallet, WalletSession } from "./types";
import { defined } from "../../protocol/defined";
import { ORIGIN } from "./origin";

const REFUSED = 4001;
const UNKNOWN_CHAIN = 4902;

function asked<T>(work: Promise<T>): Promise<T> {
  return work.catch((cause: unknown) => {
    const { code, message } = cause as { code?: number; message?: string };
    if (code === REFUSED)
      throw new ClientError("wallet_declined", "You declined in your wallet. Nothing was sent.", { cause });
    throw new ClientError("transaction_failed", `The wallet answered: ${message ?? "nothing"}`, { cause });
  });
}

export async function connectWallet(detail: FoundWallet): Promise<Connection> {
  const [account] = await asked(detail.provider.request({ method: "eth_requestAccounts" }));
  if (account === undefined) throw new ClientError("wallet_declined", "The wallet gave no account.");
  return { detail, address: getAddress(account) };
}

export async function chainOf({ detail }: Connection): Promise<bigint> {
  return BigInt(await asked(detail.provider.request({ method: "eth_chainId" })));
}

/** Asks the wallet to switch to the service's chain. */
export async function switchChain({ detail }: Connection, config: ChainConfig): Promise<void> {
  const chainId = `0x${config.chain_id.toString(16)}` as const;
  try {
    await detail.provider.request({ method: "wallet_switchEthereumChain", params: [{ chainId }] });
  } catch (cause) {
    const { code } = cause as { code?: number };
    if (code !== UNKNOWN_CHAIN) return asked(Promise.reject(cause as Error));
    const message =
      `Your wallet does not know ${config.chain_name} (chain ${config.chain_id}). Add this network in ` +
      "the wallet, then try again.";
    throw new ClientError("wrong_chain", message, { cause });
  }
}

const signerOf = ({ detail, address }: Connection): Promise<JsonRpcSigner> =>
  new BrowserProvider(detail.provider as ConstructorParameters<typeof BrowserProvider>[0], "any", {
    cacheTimeout: -1,
    pollingInterval: 1_000,
  }).getSigner(address);

type Options = Parameters<typeof createChainSecuredClient>[0];

const clientOf = (options: Pick<Options, "signer" | "walletAuth" | "gas" | "owner" | "accountId">) =>
  createChainSecuredClient({ ...ORIGIN, ...options, onSent: onTransactionSent });

const authOf = (signer: JsonRpcSigner, { typed_data_domain: { name, chainId } }: ChainConfig): WalletAuth =>
  createWalletAuth(signer, { name, version: "1", chainId: BigInt(chainId) });

/** The session of this wallet's account; undefined when it owns none yet. One signature, without cost. */
export async function signInWithWallet(
  connection: Connection,
  config: ChainConfig,
  accountId?: string,
): Promise<WalletSession | undefined> {
  const signer = await signerOf(connection);
  const walletAuth = authOf(signer, config);
  try {
    return await sessionOf(connection, config, await ownedAccount(ORIGIN, walletAuth, accountId), signer, walletAuth);
  } catch (error) {
    if (error instanceof ClientError && error.code === "account_not_found") return undefined;
    throw error;
  }
}

/** Each review says which of the clients sends. */
async function sessionOf(
  connection: Connection,
  config: ChainConfig,
  account: Account,
  signer: JsonRpcSigner,
  walletAuth: WalletAuth,
): Promise<WalletSession> {
  const of = { signer, walletAuth, accountId: account.id };
  const [owner, byService] = await Promise.all([clientOf(of), clientOf({ ...of, gas: "service" })]);
  const wallet = walletOf(connection, config, signer, false);
  return { kind: "wallet", account, config, owner, byService, wallet, isOwner: true };
}

/** The client that can make this wallet's own account. A wallet without native coin only signs. */
export async function clientWithoutAccount(connection: Connection, config: ChainConfig): Promise<ChainSecuredClient> {
  const signer = await signerOf(connection);
  const gas = (await signer.provider.getBalance(signer.address)) === 0n ? "service" : "wallet-or-service";
  return clientOf({ signer, walletAuth: authOf(signer, config), gas });
}

/** For an account that a multisig owns: reads and prepares everything, sends nothing. */
export async function prepareForSafe(
  connection: Connection,
  config: ChainConfig,
  safe: string,
  accountId?: string,
): Promise<WalletSession> {
  const signer = await signerOf(connection);
  const named = defined({ accountId, owner: safe });
  const owner = await clientOf({ signer, walletAuth: authOf(signer, config), ...named });
  const account = await owner.account();
  const wallet = walletOf(connection, config, signer, true);
  return { kind: "wallet", account, config, owner, byService: owner, wallet, isOwner: true };
}

function walletOf(
  connection: Connection,
  config: ChainConfig,
  signer: JsonRpcSigner,
  forSafe: boolean,
): ConnectedWallet {
  const { detail, address } = connection;
  const balance = (): Promise<bigint> => signer.provider.getBalance(address);
  const ready = async (): Promise<void> => {
    if ((await chainOf(connection)) !== BigInt(config.chain_id)) await switchChain(connection, config);
    const open = await asked(detail.provider.request({ method: "eth_accounts" }));
    // Of a wallet that is locked, or no longer connected to this page: it asks its user.
    const accounts = open.length > 0 ? open : await asked(detail.provider.request({ method: "eth_requestAccounts" }));
    if (!accounts.some((account) => getAddress(account) === address))
      throw new Error(`${detail.info.name} has another account open. Choose ${short(address)} there, then try again.`);
  };
  return { name: detail.info.name, address, forSafe, balance, ready };
}

/** Makes this wallet the owner of the account whose key is given, permanently, and signs in with it. */
export async function convertWithWallet(
  connection: Connection,
  config: ChainConfig,
  apiKey: string,
): Promise<WalletSession> {
  const signer = await signerOf(connection);
  const walletAuth = authOf(signer, config);
  const { owner } = await convertAccount({ ...ORIGIN, apiKey, signer, walletAuth });
  return sessionOf(connection, config, await owner.account(), signer, walletAuth);
}
