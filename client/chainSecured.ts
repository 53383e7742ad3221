/**
 * The client of a ChainSecured owner: mints by signature over HTTP, writes by transactions of the owner's wallet or
 * multisig, reads from the chain itself, billing by a signed header. Source: docs/conformance.md §3, §4, §5.
 */
import { keyIdOf, packedAccountId, parseAddress, type AccountId, type Address, type ApiKey } from "../protocol/ids";
import type { PrimaryType, TypedDataDomain } from "../protocol/typedDataShape";
import type { ForwardDomain } from "../protocol/forwardShape";
import { forwarderName } from "../protocol/serviceName";
import { AccountEvents } from "./contract";
import { ClientError, refuse } from "./errors";
import { toAccountId, toAddress } from "./fields";
import { sendByEither, sendByService } from "./forwarding";
import { operations, type Operations } from "./operations";
import type { OwnerProvider, OwnerSigner } from "./ownerSigner";
import { contractReader, ownerReads, type OwnerReads } from "./reads";
import { safeBatchFile, type OwnerTransaction, type SafeBatchFile, type SafeBatchMeta } from "./safe";
import { createTransport, type CallOptions, type Transport, type TransportOptions } from "./transport";
import {
  chainOf,
  estimateWrite,
  sendWith,
  sendingErrorOf,
  signEnvelope,
  succeeded,
  tryWrite,
  type SendTransaction,
  type SendingOptions,
  type WriteEstimate,
} from "./wallet";
import { createContractAuth, createWalletAuth, type ContractSignature, type WalletAuth } from "./walletAuth";
import {
  ownerWrites,
  type MintedUsageKey,
  type MintedWallet,
  type OwnerWrite,
  type OwnerWrites,
  type Sent,
} from "./writes";
import { attachTrigger, ownerFlows, type MintedTrigger, type OwnerFlows, type TriggerFields } from "./ownerFlows";

export interface ChainSecuredOptions extends TransportOptions, SendingOptions {
  /** Signs the mints' typed data and, unless `send` is given, the owner's transactions. */
  readonly signer: OwnerSigner;
  /** Reads the chain; default: the signer's provider. */
  readonly provider?: OwnerProvider;
  /** The account's owner, when it is not the signer: a Safe or another contract. */
  readonly owner?: string;
  /**
   * The account's id; default: that of the owner's own account. A converted or transferred account keeps the id it had:
   * name it.
   */
  readonly accountId?: string;
  /**
   * How a transaction of the owner is sent when the owner is not the signer, for example through a Safe. Resolves when
   * it is on chain.
   */
  readonly send?: SendTransaction;
  /**
   * Who pays the gas: the wallet (default); the service, out of the account's credit, for which the owner only signs;
   * or the service when the wallet has too little of the chain's coin.
   */
  readonly gas?: "wallet" | "service" | "wallet-or-service";
  /** An existing wallet header to reuse, so that the user does not sign twice; default: a new one. */
  readonly walletAuth?: WalletAuth;
  /** Signs for an owner that is a Safe or another contract with ERC-1271: webhooks, records and billing need it. */
  readonly ownerSignature?: ContractSignature;
  /** The expected deployment; a service that reports another one is refused. */
  readonly expect?: { readonly contractAddress?: string; readonly chainId?: number | bigint };
}

type Prepared<Name extends keyof OwnerWrites> = OwnerWrites[Name] extends (
  ...args: infer Args
) => Promise<OwnerWrite<infer Result>>
  ? (...args: Args) => Promise<Sent<Result>>
  : never;

type SendingWrites = { readonly [Name in Exclude<keyof OwnerWrites, "batch">]: Prepared<Name> };

/** With the signed header `X-Wallet-Auth`. */
const BY_HEADER = [
  ...([
    "balance",
    "createPaymentIntent",
    "confirmPayment",
    "history",
    "listRuns",
    "usage",
    "getBudgets",
    "setUsageKeyLimits",
    "listUsageKeyLimits",
    "events",
    "exportHistory",
  ] as const),
  ...(["listTriggers", "getTrigger", "listFirings", "updateTrigger"] as const),
  ...(["listWebhooks", "createWebhook", "updateWebhook", "deleteWebhook", "testWebhook"] as const),
  ...(["webhookDeliveries", "replayWebhook", "receiveWebhook"] as const),
] as const;
const OPEN = ["stripeConfig", "limits", "getNodeChainConfig", "getActionIpfsId"] as const;

export interface ChainSecuredClient
  extends SendingWrites, OwnerReads, OwnerFlows, Operations<(typeof BY_HEADER | typeof OPEN)[number]> {
  readonly accountId: AccountId;
  readonly owner: Address;
  readonly contractAddress: Address;
  readonly chainId: bigint;
  /** The EIP-712 domain of the service's typed data. */
  readonly typedDataDomain: TypedDataDomain;
  /** Every write, prepared and not sent: for multisigs, batches and offline signers. */
  readonly prepare: OwnerWrites;
  /** Simulates a prepared write, sends it as the owner and waits for it to be mined. */
  send<Result extends object>(write: OwnerWrite<Result>): Promise<Sent<Result>>;
  /** Simulates a prepared write without sending it; throws the contract's revert under its error code. */
  check(write: OwnerWrite): Promise<void>;
  /** Estimates the gas of a prepared write. Throws the contract's revert under its error code. */
  estimate(write: OwnerWrite): Promise<WriteEstimate>;
  /** A prepared write as a plain transaction for any wallet or multisig. */
  transaction(write: OwnerWrite): OwnerTransaction;
  /** Prepared writes as a file for Safe's Transaction Builder. */
  safeFile(writes: readonly OwnerWrite[], meta: SafeBatchMeta): SafeBatchFile;
  /** First half of creating a trigger, and the write that attaches its key. */
  prepareTrigger(
    fields: TriggerFields,
    options?: CallOptions,
  ): Promise<{ minted: MintedTrigger; write: OwnerWrite<{ wallet_address: string; api_key_hash: string }> }>;
  /** First half of creating a PKP: the key exists but has no owner until `registerPkp` is on chain. */
  mintPkp(options?: CallOptions): Promise<MintedWallet>;
  /**
   * First half of creating a usage key: the secret (shown once) and the public data that attaches it. The key grants
   * nothing until `attachUsageKey` is on chain.
   */
  mintUsageKey(options?: CallOptions): Promise<{ usage_api_key: string; minted: MintedUsageKey }>;
}

/**
 * Asks the service for its chain and contract, checks that the wallet is on that chain, and gives the owner's client.
 * @throws ClientError `wrong_chain`, `no_provider`, `invalid_argument`, or the error of the failed request.
 */
export async function createChainSecuredClient(options: ChainSecuredOptions): Promise<ChainSecuredClient> {
  const transport = createTransport(options);
  const deployment = await deploymentOf(transport, options);
  const signerAddress = toAddress(await options.signer.getAddress(), "signer");
  const owner = options.owner === undefined ? signerAddress : toAddress(options.owner, "owner");
  const accountId =
    options.accountId === undefined ? packedAccountId(owner) : toAccountId(options.accountId, "accountId");
  const { ownerSignature } = options;
  const walletAuth =
    ownerSignature === undefined
      ? (options.walletAuth ?? createWalletAuth(options.signer, deployment.domain))
      : createContractAuth(owner, ownerSignature, deployment.domain);
  return assemble({
    ...deployment,
    walletAuth,
    hasOwnersSignature: ownerSignature !== undefined || owner === signerAddress,
    transport,
    owner,
    accountId,
    signerAddress,
    signer: options.signer,
    send: sendingOf(options, owner, signerAddress, transport, deployment),
  });
}

interface Deployment {
  readonly contractAddress: Address;
  readonly chainId: bigint;
  readonly domain: TypedDataDomain;
  /** Computed only where the service pays the gas. */
  readonly forwardDomain: () => ForwardDomain;
  readonly provider: OwnerProvider;
}

interface Parts extends Deployment {
  readonly transport: Transport;
  readonly owner: Address;
  readonly accountId: AccountId;
  readonly signerAddress: Address;
  readonly signer: OwnerSigner;
  readonly walletAuth: WalletAuth;
  readonly hasOwnersSignature: boolean;
  /** Undefined when the owner is not the signer and the caller passed no `send`. */
  readonly send: SendTransaction | undefined;
}

async function deploymentOf(transport: Transport, options: ChainSecuredOptions): Promise<Deployment> {
  const provider = options.provider ?? options.signer.provider;
  if (provider === null)
    throw new ClientError("no_provider", "The signer has no provider: connect it to one, or give `provider`.");
  const config = await operations(["getNodeChainConfig"], transport, () => ({})).getNodeChainConfig();
  const contractAddress = toAddress(config.contract_address, "contract_address");
  const chainId = BigInt(config.chain_id);
  const { contractAddress: known, chainId: knownChain } = options.expect ?? {};
  const wallets = await chainOf(provider);
  if (wallets !== chainId)
    throw new ClientError("wrong_chain", `The wallet is on chain ${wallets}, the service on chain ${chainId}.`);
  if (knownChain !== undefined && BigInt(knownChain) !== chainId)
    throw new ClientError("wrong_chain", `The service is on chain ${chainId}, not ${knownChain}.`);
  if (known !== undefined && parseAddress(known) !== contractAddress)
    throw new ClientError("wrong_chain", `The service names the contract ${contractAddress}, not ${known}.`);
  const name = config.typed_data_domain.name;
  const forwardDomain = (): ForwardDomain => ({
    name: forwarderName(name.replace(/ ChainSecured$/, "")),
    version: "1",
    chainId,
    verifyingContract: toAddress(config.forwarder_address, "forwarder_address"),
  });
  return { provider, contractAddress, chainId, domain: { name, version: "1", chainId }, forwardDomain };
}

function sendingOf(
  options: ChainSecuredOptions,
  owner: Address,
  signerAddress: Address,
  transport: Transport,
  { provider, chainId, forwardDomain }: Deployment,
): SendTransaction | undefined {
  if (options.send !== undefined || owner !== signerAddress) return options.send;
  const byWallet = sendWith(options.signer, chainId, options);
  if (options.gas === undefined || options.gas === "wallet") return byWallet;
  const byService = sendByService({ ...options, transport, provider, domain: forwardDomain() });
  return options.gas === "service" ? byService : sendByEither(byWallet, byService);
}

function assemble(parts: Parts): ChainSecuredClient {
  const { accountId, owner, contractAddress, chainId, provider, domain: typedDataDomain } = parts;
  const ask = contractReader(contractAddress, provider);
  const prepare = ownerWrites({ accountId, owner, ask });
  const { send, check, estimate, transaction, sender } = sending(parts);
  const mints = mintsOf(parts);
  const triggers = operations(["createTrigger", "deleteTrigger"], parts.transport, ownersHeaders(parts));
  return {
    accountId,
    owner,
    contractAddress,
    chainId,
    typedDataDomain,
    prepare,
    send,
    check,
    estimate,
    transaction,
    safeFile: (writes, meta) => safeBatchFile(chainId, writes.map(transaction), { safe: owner, ...meta }),
    ...sendingWrites(prepare, send),
    ...ownerReads(accountId, ask),
    ...mints,
    prepareTrigger: async (fields, options) => {
      const minted = await triggers.createTrigger(fields, options);
      return { minted, write: await attachTrigger(prepare, minted, fields) };
    },
    ...ownerFlows({ ...mints, ...triggers, prepare, accountId, ask, send, check, sender }),
    ...operations(BY_HEADER, parts.transport, ownersHeaders(parts)),
    ...operations(OPEN, parts.transport, () => ({})),
  };
}

function sending(
  parts: Parts,
): Pick<ChainSecuredClient, "send" | "check" | "estimate" | "transaction"> & { sender: () => SendTransaction } {
  const { contractAddress, accountId, owner, provider, chainId } = parts;
  const transaction = (write: OwnerWrite): OwnerTransaction => ({ to: contractAddress, value: "0", data: write.data });
  const check = (write: OwnerWrite): Promise<void> => tryWrite(provider, chainId, owner, transaction(write));
  const estimate = (write: OwnerWrite): Promise<WriteEstimate> => estimateWrite(provider, owner, transaction(write));
  const sender = (): SendTransaction => parts.send ?? notTheOwner(owner);
  const send = async <Result extends object>(write: OwnerWrite<Result>): Promise<Sent<Result>> => {
    const sendTransaction = sender();
    await check(write);
    const receipt = await sendTransaction(transaction(write)).catch((cause: unknown) =>
      Promise.reject(sendingErrorOf(cause)),
    );
    succeeded(receipt, receipt.hash);
    const result = write.resultOf(new AccountEvents(receipt.logs, contractAddress, accountId));
    return { ...result, success: true, transaction_hash: receipt.hash, block_number: receipt.blockNumber };
  };
  return { send, check, estimate, transaction, sender };
}

function notTheOwner(owner: Address): never {
  throw new ClientError(
    "not_the_owner",
    `The owner is ${owner}: give \`send\`, or export the prepared write with transaction() or safeFile().`,
  );
}

function sendingWrites(prepare: OwnerWrites, send: ChainSecuredClient["send"]): SendingWrites {
  const { batch: _batch, ...single } = prepare;
  const entries = Object.entries(single) as [string, (...args: unknown[]) => Promise<OwnerWrite>][];
  return Object.fromEntries(
    entries.map(([name, write]) => [name, async (...args: unknown[]) => send(await write(...args))]),
  ) as unknown as SendingWrites;
}

function mintsOf({
  transport,
  signer,
  domain,
  accountId,
}: Parts): Pick<ChainSecuredClient, "mintPkp" | "mintUsageKey"> {
  const open = operations(["createWalletWithSignature", "addUsageApiKeyWithSignature"], transport, () => ({}));
  const signed = async (primaryType: PrimaryType) => ({
    ...(await signEnvelope(signer, primaryType, domain)),
    api_key_hash: accountId,
  });
  return {
    mintPkp: async (options) => open.createWalletWithSignature(await signed("CreateWallet"), options),
    mintUsageKey: async (options) => {
      const { usage_api_key, ...minted } = await open.addUsageApiKeyWithSignature(
        await signed("AddUsageApiKey"),
        options,
      );
      if (keyIdOf(usage_api_key as ApiKey) !== minted.api_key_hash)
        throw new ClientError("unexpected_answer", "The hash in the answer is not the key's.");
      return { usage_api_key, minted };
    },
  };
}

/** The headers of the routes that take a signed header; `X-Account` says which of the wallet's accounts is meant. */
function ownersHeaders({ walletAuth, accountId, hasOwnersSignature }: Parts): () => Promise<Record<string, string>> {
  return async () => {
    if (!hasOwnersSignature)
      refuse(
        "this needs the owner's own signature: give `ownerSignature`; to pay and to read, a multisig's account can " +
          "use a usage key: createClient({ apiKey }).",
      );
    return { "x-wallet-auth": await walletAuth(), "x-account": accountId };
  };
}
