/** For owners with a wallet or a multisig: everything that knows the contract. Apart from the rest by its size. */
export { createChainSecuredClient, type ChainSecuredClient, type ChainSecuredOptions } from "./chainSecured";
export { convertAccount, type ConvertProgress } from "./convert";
export { decodeCalls, type DecodedCall } from "./calls";
export type { FlowOptions, OwnerFlows, Progress } from "./ownerFlows";
export type { OwnerProvider, OwnerSigner, Receipt, ReceiptLog } from "./ownerSigner";
export type { OwnerTransaction, SafeBatchFile, SafeBatchMeta } from "./safe";
export { signEnvelope, type SendTransaction, type SignedEnvelope, type WriteEstimate } from "./wallet";
export { createWalletAuth, ownedAccount, type ContractSignature, type WalletAuth } from "./walletAuth";
export type { MintedUsageKey, MintedWallet, OwnerWrite, OwnerWrites, Sent, UsageKeyPermissions } from "./writes";
