// Signs bytes as wallets do (EIP-191), for messages that are no text, such as the hash of a Safe's transaction.
// Parameters: pkpId, bytes (0x hex). Response: the signature, 65 bytes of hex.
async function main({ pkpId, bytes }) {
  if (!ethers.isHexString(bytes) || bytes.length % 2 !== 0) throw new Error("bytes must be 0x and an even number of hex digits");
  return Actions.signDigest({ pkpId, digest: ethers.hashMessage(ethers.getBytes(bytes)) });
}
