// Signs a text as wallets do (EIP-191): the text's UTF-8 bytes behind "\x19Ethereum Signed Message:\n" and their length.
// Parameters: pkpId, message (a string). Response: the signature, 65 bytes of hex.
async function main({ pkpId, message }) {
  return Actions.signMessage({ pkpId, message });
}
