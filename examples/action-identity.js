// Proves what code made a statement. The signing key is bound to the CID of this file and to nothing else: whoever knows the CID can look up
// the address (getActionWalletAddress in any action), and no other code can sign for it.
async function main({ statement = "the sky is blue" }) {
  const wallet = new ethers.Wallet(await Actions.getActionPrivateKey());
  const signature = await wallet.signMessage(statement);
  return { statement, signature, address: wallet.address };
}
