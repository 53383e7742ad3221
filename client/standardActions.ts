/** Written from client/standard by KEYWRIGHT_UPDATE=1 npx mocha test/client/standardActions.test.ts; never by hand. docs/standard-actions.md shows them. */
export const STANDARD_ACTIONS = {
  authorization: {
    cid: "QmakhLpZUZGUYJTSemSRod1DLZSwo2Pt67Kzwoqzgt2cZj",
    code: "// Signs an authorization that lends the PKP's account the code of a contract (EIP-7702). That code may then do everything the account may.\n// Parameters: pkpId, authorization: { address, chainId, nonce }. Response: the signature, 65 bytes of hex.\nasync function main({ pkpId, authorization: { address, chainId, nonce } }) {\n  return Actions.signDigest({ pkpId, digest: ethers.hashAuthorization({ address, chainId: BigInt(chainId), nonce: BigInt(nonce) }) });\n}\n",
  },
  decrypt: {
    cid: "QmQ42Bmp1aYrUjA4sXPxzcZQjL2hGRnip9QBZemC7qJyqS",
    code: "// Decrypts what was encrypted for the PKP, and shows it to whoever may run this.\n// Parameters: pkpId, ciphertext. Response: the text.\nasync function main({ pkpId, ciphertext }) {\n  return Actions.Decrypt({ pkpId, ciphertext });\n}\n",
  },
  digest: {
    cid: "QmQw2cM9C3TubdBSERgPyBkeB415RU2R7GDBvbAHusnybX",
    code: "// Signs 32 bytes as they are. Whoever may run this may have the PKP sign anything at all: prefer the others.\n// Parameters: pkpId, digest (0x and 64 hex digits). Response: the signature, 65 bytes of hex.\nasync function main({ pkpId, digest }) {\n  return Actions.signDigest({ pkpId, digest });\n}\n",
  },
  ed25519: {
    cid: "QmWZyv4JtU7JgTfEMVn6J7FrqGbgyWFEgnxbCpBTXFnsoJ",
    code: "// Signs bytes with the PKP's Ed25519 key (Solana, Aptos, Sui and others). Nothing is put before them: whoever may run this may have any transaction signed.\n// Parameters: pkpId, bytes (0x hex). Response: the signature, 64 bytes of hex.\nasync function main({ pkpId, bytes }) {\n  return Actions.signEd25519({ pkpId, message: ethers.getBytes(bytes) });\n}\n",
  },
  encrypt: {
    cid: "QmRJgncJu4xka7owsn5hJLJ5uDjJP7t3RtnojGdBXHHhTq",
    code: "// Encrypts a text for the PKP: every action that a group lists together with the PKP can decrypt it.\n// Parameters: pkpId, message. Response: the ciphertext.\nasync function main({ pkpId, message }) {\n  return Actions.Encrypt({ pkpId, message });\n}\n",
  },
  message: {
    cid: "Qmdwen1Ybpus4KwJo4zWSgayxm9Cmgn1ooZbXrazUWZPzU",
    code: '// Signs a text as wallets do (EIP-191): the text\'s UTF-8 bytes behind "\\x19Ethereum Signed Message:\\n" and their length.\n// Parameters: pkpId, message (a string). Response: the signature, 65 bytes of hex.\nasync function main({ pkpId, message }) {\n  return Actions.signMessage({ pkpId, message });\n}\n',
  },
  messageBytes: {
    cid: "QmVAc1b2P1vzpt8eDKSgwYgmcXDieUFHY2shrHFkZhe2dB",
    code: '// Signs bytes as wallets do (EIP-191), for messages that are no text, such as the hash of a Safe\'s transaction.\n// Parameters: pkpId, bytes (0x hex). Response: the signature, 65 bytes of hex.\nasync function main({ pkpId, bytes }) {\n  if (!ethers.isHexString(bytes) || bytes.length % 2 !== 0) throw new Error("bytes must be 0x and an even number of hex digits");\n  return Actions.signDigest({ pkpId, digest: ethers.hashMessage(ethers.getBytes(bytes)) });\n}\n',
  },
  p256: {
    cid: "QmUYTQBsiAQxb7b26rspGNvakd6q5jub5ZBWyWMwXYboyz",
    code: "// Signs bytes with the PKP's P-256 key and SHA-256, as tokens (ES256) want it. Whoever may run this may have any token signed.\n// Parameters: pkpId, bytes (0x hex). Response: the signature r and s, 64 bytes of hex.\nasync function main({ pkpId, bytes }) {\n  return Actions.signP256({ pkpId, message: ethers.getBytes(bytes) });\n}\n",
  },
  schnorr: {
    cid: "QmPTfLCyeE6mGDj3zLrbgnAcFPRnkqwSRLPRc2gRCokLcC",
    code: '// Signs 32 bytes with the PKP\'s BIP-340 key; with merkleRoot ("0x", or 32 bytes) with its taproot output key. Whoever may run this may have any spend signed.\n// Parameters: pkpId, digest (0x and 64 hex digits), merkleRoot (may be left out). Response: the signature, 64 bytes of hex.\nasync function main({ pkpId, digest, merkleRoot }) {\n  return Actions.signSchnorr({ pkpId, digest, merkleRoot });\n}\n',
  },
  transaction: {
    cid: "QmdZXurTWrbE9H5DRtigab2FFrG17jNjuwFJpYPrt19yMk",
    code: "// Signs a transaction of an EVM chain.\n// Parameters: pkpId, transaction. Response: the raw signed transaction, 0x hex.\nasync function main({ pkpId, transaction }) {\n  return Actions.signTransaction({ pkpId, transaction });\n}\n",
  },
  typedData: {
    cid: "QmUj54Lrh6q1RBY7FsaZUpodCbrqsT8HBUg8jrmtnSCxwG",
    code: "// Signs typed data (EIP-712).\n// Parameters: pkpId, domain, types, primaryType, message. Response: the signature, 65 bytes of hex.\nasync function main({ pkpId, domain, types, primaryType, message }) {\n  return Actions.signTypedData({ pkpId, domain, types, primaryType, message });\n}\n",
  },
} as const;

export type StandardAction = keyof typeof STANDARD_ACTIONS;
