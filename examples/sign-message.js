// Signs a text with a PKP (EIP-191). The key stays on the host; what comes back is the signature.
async function main({ pkpId, message = "I was here" }) {
  const signature = await Actions.signMessage({ pkpId, message });
  return { message, signature, signer: ethers.verifyMessage(message, signature) };
}
