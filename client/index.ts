/**
 * The SDK: `createClient` for API mode and usage keys, `createChainSecuredClient` for owners with a wallet or a
 * multisig. docs/chain-secured.md walks through the latter.
 */
export { createAccount, createClient, everyItem, type Client, type ClientOptions, type NewAccount } from "./api";
export * from "./owner";
export { exportedRows, exportedText, type ExportOptions } from "./exports";
export { keyHashOf } from "./fields";
export { isKeyText } from "./keyText";
export { ClientError, type ClientErrorCode, type ClientErrorOptions } from "./errors";
export type { AccountId, Address, ApiKey, KeyId } from "../protocol/ids";
export type { Operations, Page, Result } from "./operations";
export { STANDARD_ACTIONS, type StandardAction } from "./standardActions";
export type { CallOptions, TransportOptions } from "./transport";
export { verifyWebhook, type VerifyWebhookOptions, type WebhookHeaders, type WebhookMessage } from "./webhook";
export type { Answer, Body, Input, Item, Query } from "./wire";
