/** Mints for ChainSecured accounts: the wallet's signature is the credential; nothing is written on chain. */
import { KeywrightError } from "../../protocol/errors";
import { packedAccountId, type AccountId, type Address } from "../../protocol/ids";
import type { PrimaryType } from "../../protocol/typedData";
import { verifyTypedData } from "../../protocol/typedData";
import type { Chain } from "../chain/types";
import type { Call, HandlersOf } from "../middleware/call";
import { accountsOf } from "../ownership";
import type { RouteDeps } from "./deps";

type MintRoute = "createWalletWithSignature" | "addUsageApiKeyWithSignature";

export function signatureRoutes({ chain, executor, typedDataDomain }: RouteDeps): HandlersOf<MintRoute> {
  /** Verified here to learn the signer, and again by the executor, which does not trust the relayer. */
  const checked = async ({ body }: Call<MintRoute>, primaryType: PrimaryType) => {
    const { typed_data, signature, api_key_hash: named } = body;
    const signer = verifyTypedData(typed_data, signature, {
      primaryType,
      domain: typedDataDomain,
      nowSeconds: Date.now() / 1000,
    });
    return { typed_data, signature, accountId: named ?? (await accountToMintFor(chain, signer)) };
  };
  return {
    createWalletWithSignature: async (call) => {
      const minted = await executor.call("mintPkpWithSignature", await checked(call, "CreateWallet"), call);
      return { wallet_address: minted.walletAddress, derivation_path: minted.derivationPath };
    },

    addUsageApiKeyWithSignature: async (call) => {
      const minted = await executor.call("mintUsageKeyWithSignature", await checked(call, "AddUsageApiKey"), call);
      const { usageApiKey, walletAddress, derivationPath, apiKeyHash } = minted;
      return {
        usage_api_key: usageApiKey,
        wallet_address: walletAddress,
        derivation_path: derivationPath,
        api_key_hash: apiKeyHash,
      };
    },
  };
}

/**
 * The signer's main account. A wallet without one mints for the account of its own id, which it is about to create,
 * whatever accounts others gave to it.
 * @throws KeywrightError `invalid_value` when it has several of its own, or was handed back the one of its own id.
 */
async function accountToMintFor(chain: Chain, signer: Address): Promise<AccountId> {
  const { main, own, given } = await accountsOf(chain, signer);
  const packed = packedAccountId(signer);
  if (main === undefined && given.includes(packed))
    throw new KeywrightError(
      "invalid_value",
      `body.api_key_hash: ${packed} was handed back to ${signer} by others, who may hold keys of it; ` +
        "name it to mint for it.",
    );
  if (own.length > 1)
    throw new KeywrightError(
      "invalid_value",
      `body.api_key_hash: ${signer} owns several accounts; name the one to mint for.`,
    );
  return main ?? packed;
}
