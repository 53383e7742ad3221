// Signs a transaction of an EVM chain.
// Parameters: pkpId, transaction. Response: the raw signed transaction, 0x hex.
async function main({ pkpId, transaction }) {
  return Actions.signTransaction({ pkpId, transaction });
}
