// Signs 32 bytes as they are. Whoever may run this may have the PKP sign anything at all: prefer the others.
// Parameters: pkpId, digest (0x and 64 hex digits). Response: the signature, 65 bytes of hex.
async function main({ pkpId, digest }) {
  return Actions.signDigest({ pkpId, digest });
}
