// Signs bytes with the PKP's Ed25519 key (Solana, Aptos, Sui and others). Nothing is put before them: whoever may run this may have any transaction signed.
// Parameters: pkpId, bytes (0x hex). Response: the signature, 64 bytes of hex.
async function main({ pkpId, bytes }) {
  return Actions.signEd25519({ pkpId, message: ethers.getBytes(bytes) });
}
