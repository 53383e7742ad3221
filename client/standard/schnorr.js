// Signs 32 bytes with the PKP's BIP-340 key; with merkleRoot ("0x", or 32 bytes) with its taproot output key. Whoever may run this may have any spend signed.
// Parameters: pkpId, digest (0x and 64 hex digits), merkleRoot (may be left out). Response: the signature, 64 bytes of hex.
async function main({ pkpId, digest, merkleRoot }) {
  return Actions.signSchnorr({ pkpId, digest, merkleRoot });
}
