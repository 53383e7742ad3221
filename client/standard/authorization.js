// Signs an authorization that lends the PKP's account the code of a contract (EIP-7702). That code may then do everything the account may.
// Parameters: pkpId, authorization: { address, chainId, nonce }. Response: the signature, 65 bytes of hex.
async function main({ pkpId, authorization: { address, chainId, nonce } }) {
  return Actions.signDigest({ pkpId, digest: ethers.hashAuthorization({ address, chainId: BigInt(chainId), nonce: BigInt(nonce) }) });
}
