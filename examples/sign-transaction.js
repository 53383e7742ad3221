// Signs a transaction, which anyone who gets the answer can send. The action decides what it signs: here, never more
// than a limit.
const MOST = ethers.parseEther("0.1");

async function main({ pkpId, to, valueWei, nonce = 0, chainId = 1, maxFeePerGas = "20000000000" }) {
  const value = BigInt(valueWei);
  if (value > MOST) throw new Error(`${value} wei is more than this action signs (${MOST})`);
  const transaction = {
    type: 2,
    chainId,
    nonce,
    to,
    value,
    gasLimit: 21000,
    maxFeePerGas,
    maxPriorityFeePerGas: "1000000000",
  };
  const raw = await Actions.signTransaction({ pkpId, transaction });
  const { from, hash } = ethers.Transaction.from(raw);
  return { raw, from, hash };
}
