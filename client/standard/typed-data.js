// Signs typed data (EIP-712).
// Parameters: pkpId, domain, types, primaryType, message. Response: the signature, 65 bytes of hex.
async function main({ pkpId, domain, types, primaryType, message }) {
  return Actions.signTypedData({ pkpId, domain, types, primaryType, message });
}
