// Proves which code made a statement. The signing key belongs to the CID of this file: no other code can sign with it,
// and anyone who knows the CID can look up the address (getActionWalletAddress in any action).
async function main({ statement = "the sky is blue" }) {
  const wallet = new ethers.Wallet(await Actions.getActionPrivateKey());
  const signature = await wallet.signMessage(statement);
  return { statement, signature, address: wallet.address };
}
