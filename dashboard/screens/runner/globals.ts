/** The globals of actions beyond the language, for the editor's completion. Details: docs/actions.md. */
export interface Ability {
  readonly name: string;
  readonly detail: string;
  readonly info: string;
}

export const ABILITIES: readonly Ability[] = [
  { name: "signMessage", detail: "({ pkpId, message })", info: "Signs a text (EIP-191)." },
  { name: "signTypedData", detail: "({ pkpId, domain, types, message })", info: "Signs EIP-712 typed data." },
  { name: "signTransaction", detail: "({ pkpId, transaction })", info: "Gives the raw signed transaction." },
  { name: "signDigest", detail: "({ pkpId, digest })", info: "Signs 32 bytes as they are." },
  { name: "Encrypt", detail: "({ pkpId, message })", info: "Encrypts a text for a PKP." },
  { name: "Decrypt", detail: "({ pkpId, ciphertext })", info: "Opens what Encrypt made." },
  { name: "getPrivateKey", detail: "({ pkpId })", info: "The PKP's key itself, where the service allows it." },
  { name: "getActionPrivateKey", detail: "()", info: "A key that belongs to this code and nothing else." },
  { name: "getActionPublicKey", detail: "({ ipfsId })", info: "The public key of an action's own key." },
  {
    name: "spend",
    detail: "({ budget, amount, limit, window })",
    info: "Counts an amount against a budget of this code.",
  },
  { name: "getActionWalletAddress", detail: "({ ipfsId })", info: "The address of an action's own key." },
  { name: "setResponse", detail: "({ response })", info: "Sets the response without returning it." },
  { name: "showImportDetails", detail: "()", info: "What the imports resolved to." },
];

export const GLOBALS: readonly Ability[] = [
  { name: "Actions", detail: "", info: "What only the service can do: sign, encrypt, decrypt." },
  { name: "ethers", detail: "", info: "The ethers library, version 6." },
  { name: "fetch", detail: "(url, options)", info: "HTTP requests to the outside." },
  { name: "crypto", detail: "", info: "Web cryptography." },
  { name: "console", detail: "", info: "Each call is a line of the logs." },
  { name: "jsParams", detail: "", info: "The parameters of the run." },
  { name: "TextEncoder", detail: "", info: "Text to bytes." },
  { name: "TextDecoder", detail: "", info: "Bytes to text." },
  { name: "URL", detail: "", info: "Addresses taken apart." },
];
