/**
 * `keywright/action`: the types of what an action sees besides the web's own globals (those of `"lib": ["es2023",
 * "webworker"]` that docs/actions.md lists). In a tsconfig: `"types": ["keywright/action"]`.
 */
import type { ethers as Ethers } from "ethers";

// ops
/** Written from the op schemas by KEYWRIGHT_UPDATE=1 npx mocha test/client/actionTypes.test.ts; never by hand. */
export interface Ops {
  /** EIP-191: signs the text's UTF-8 bytes. The signature, 65 bytes of hex. */
  signMessage(args: { pkpId: string; message: string }): Promise<string>;
  /** EIP-712. The signature, 65 bytes of hex. */
  signTypedData(args: {
    pkpId: string;
    domain: Record<string, unknown>;
    types: Record<string, readonly { name: string; type: string }[]>;
    message: Record<string, unknown>;
    primaryType?: string;
  }): Promise<string>;
  /** The raw signed transaction, ready to be sent. */
  signTransaction(args: {
    pkpId: string;
    transaction: {
      type?: number | bigint | string;
      chainId: number | bigint | string;
      nonce: number | bigint | string;
      gasLimit: number | bigint | string;
      to?: unknown;
      from?: unknown;
      value?: number | bigint | string;
      data?: string;
      gasPrice?: number | bigint | string;
      maxFeePerGas?: number | bigint | string;
      maxPriorityFeePerGas?: number | bigint | string;
      accessList?: readonly { address: string; storageKeys: readonly string[] }[];
      maxFeePerBlobGas?: number | bigint | string;
      blobVersionedHashes?: readonly string[];
      authorizationList?: readonly {
        address: string;
        chainId: number | bigint | string;
        nonce: number | bigint | string;
        signature: string | { r: string; s: string; yParity: number | bigint | string };
      }[];
    };
  }): Promise<string>;
  /** Signs 32 bytes as they are. The signature, 65 bytes of hex. */
  signDigest(args: { pkpId: string; digest: string }): Promise<string>;
  /** Encrypts a text for the account and the PKP. */
  Encrypt(args: { pkpId: string; message: string }): Promise<string>;
  /** Decrypts what was encrypted for the account and the PKP. */
  Decrypt(args: { pkpId: string; ciphertext: string }): Promise<string>;
  /** The key itself, where the deployment allows it. Prefer the signing functions. */
  getPrivateKey(args: { pkpId: string }): Promise<string>;
  /** Ed25519 over a text or bytes. */
  signEd25519(args: { pkpId: string; message: string | Uint8Array }): Promise<string>;
  /** BIP-340 over 32 bytes, with the taproot tweak when a merkle root is given. */
  signSchnorr(args: { pkpId: string; digest: string; merkleRoot?: string }): Promise<string>;
  /** ECDSA over P-256. */
  signP256(args: { pkpId: string; digest?: string; message?: string | Uint8Array }): Promise<string>;
  /** The PKP's public key on a curve. */
  getPublicKey(args: { pkpId: string; curve: "secp256k1" | "ed25519" | "bip340" | "p256" }): Promise<string>;
  /** A key bound to the CID of the running code. */
  getActionPrivateKey(args?: Record<string, never>): Promise<string>;
  /** Ed25519 with the action's own key. */
  signEd25519AsAction(args: { message: string | Uint8Array }): Promise<string>;
  /** BIP-340 with the action's own key. */
  signSchnorrAsAction(args: { digest: string; merkleRoot?: string }): Promise<string>;
  /** P-256 with the action's own key. */
  signP256AsAction(args?: { digest?: string; message?: string | Uint8Array }): Promise<string>;
  /** The public key of any action. */
  getActionPublicKey(args: { ipfsId: string; curve?: "secp256k1" | "ed25519" | "bip340" | "p256" }): Promise<string>;
  /** The address of any action. */
  getActionWalletAddress(args: { ipfsId: string }): Promise<string>;
  /** Counts an amount against a budget of this code, before it is signed. What is left of the limit. */
  spend(args: { budget: string; amount: string; limit: string; window: "hour" | "day" }): Promise<string>;
}
// end

export interface ImportDetail {
  readonly specifier: string;
  readonly url: string;
  readonly integrity: string;
  readonly bytes: number;
}

export interface ActionsApi extends Ops {
  /** Sets the response; the return value of `main` takes precedence. */
  setResponse(args: { response: unknown }): void;
  /** What the imports resolved to; also logged. */
  showImportDetails(): ImportDetail[];
}

declare global {
  const Actions: ActionsApi;
  /** The same under the name older programs use. */
  const LitActions: ActionsApi;
  /** The parameters; `main` receives them, too. */
  const jsParams: Record<string, unknown>;
  /** Version 6. */
  const ethers: typeof Ethers;
}
