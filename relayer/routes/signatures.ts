/** Mints for ChainSecured accounts: the wallet's signature is the credential, nothing is written on chain. Source: specification §4, §5.6. */
import type { PrimaryType } from "../../protocol/typedData";
import { verifyTypedData } from "../../protocol/typedData";
import type { Call, HandlersOf } from "../middleware/call";
import type { RouteDeps } from "./deps";

type MintRoute = "createWalletWithSignature" | "addUsageApiKeyWithSignature";

export function signatureRoutes({ executor, typedDataDomain }: RouteDeps): HandlersOf<MintRoute> {
  /** The envelope is checked here for a quick answer, and by the executor because it takes nothing on our word. */
  const checked = ({ body }: Call<MintRoute>, primaryType: PrimaryType) => {
    const { typed_data, signature, api_key_hash: accountId } = body;
    verifyTypedData(typed_data, signature, { primaryType, domain: typedDataDomain, nowSeconds: Date.now() / 1000 });
    return { typed_data, signature, ...(accountId === undefined ? {} : { accountId }) };
  };
  return {
    createWalletWithSignature: async (call) => {
      const minted = await executor.call("mintPkpWithSignature", checked(call, "CreateWallet"), call);
      return { wallet_address: minted.walletAddress, derivation_path: minted.derivationPath };
    },

    addUsageApiKeyWithSignature: async (call) => {
      const minted = await executor.call("mintUsageKeyWithSignature", checked(call, "AddUsageApiKey"), call);
      const { usageApiKey, walletAddress, derivationPath, apiKeyHash } = minted;
      return { usage_api_key: usageApiKey, wallet_address: walletAddress, derivation_path: derivationPath, api_key_hash: apiKeyHash };
    },
  };
}
