// Signs bytes with the PKP's P-256 key and SHA-256, as tokens (ES256) want it. Whoever may run this may have any token signed.
// Parameters: pkpId, bytes (0x hex). Response: the signature r and s, 64 bytes of hex.
async function main({ pkpId, bytes }) {
  return Actions.signP256({ pkpId, message: ethers.getBytes(bytes) });
}
