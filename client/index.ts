/**
 * The SDK: `createClient` for API mode and usage keys, `createChainSecuredClient` for owners with a wallet or a
 * multisig. docs/chain-secured.md walks through the latter.
 */
export { createAccount, createClient, everyItem, type Client, type ClientOptions, type NewAccount } from "./api";
export { createChainSecuredClient, type ChainSecuredClient, type ChainSecuredOptions } from "./chainSecured";
export { convertAccount, type ConvertProgress } from "./convert";
export { decodeCalls, type DecodedCall } from "./calls";
export { isKeyText, keyHashOf } from "./fields";
export { ClientError, type ClientErrorCode, type ClientErrorOptions } from "./errors";
export type { AccountId, Address, ApiKey, KeyId } from "../protocol/ids";
export type { Operations, Page, Result } from "./operations";
export type { FlowOptions, OwnerFlows, Progress } from "./ownerFlows";
export type { OwnerTransaction, SafeBatchFile, SafeBatchMeta } from "./safe";
export { STANDARD_ACTIONS, type StandardAction } from "./standardActions";
export type { CallOptions, TransportOptions } from "./transport";
export type { OwnerProvider, OwnerSigner, Receipt, ReceiptLog } from "./ownerSigner";
export { signEnvelope, type SendTransaction, type SignedEnvelope, type WriteEstimate } from "./wallet";
export { createWalletAuth, ownedAccount, type WalletAuth } from "./walletAuth";
export { verifyWebhook, type VerifyWebhookOptions, type WebhookHeaders, type WebhookMessage } from "./webhook";
export type { Answer, Body, Input, Item, Query } from "./wire";
export type { MintedUsageKey, MintedWallet, OwnerWrite, OwnerWrites, Sent, UsageKeyPermissions } from "./writes";
