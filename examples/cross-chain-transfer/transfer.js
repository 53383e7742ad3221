// Once a deposit has arrived on one chain, signs the payout on another and the deposit's transfer to the treasury.
// TERMS is defined in the text put before this file.
async function balanceOf({ rpcUrl, pkpId, block }) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_getBalance", params: [pkpId, block] });
  const answer = await fetch(rpcUrl, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
    signal: AbortSignal.timeout(10_000),
  });
  return BigInt((await answer.json()).result);
}

async function main() {
  const { amount, deposit, payout, gas } = TERMS;
  const cost = BigInt(gas.gasLimit) * BigInt(gas.maxFeePerGas);
  // The deposit also pays the gas of its own transfer.
  if ((await balanceOf(deposit)) < BigInt(amount) + cost) throw new Error("the deposit is not there yet");
  const transfer = (from, to, chainId, nonce) =>
    Actions.signTransaction({ pkpId: from, transaction: { type: 2, chainId, nonce, to, value: amount, ...gas } });
  return {
    payout: await transfer(payout.pkpId, payout.to, payout.chainId, payout.nonce),
    // Its first and only transaction.
    sweep: await transfer(deposit.pkpId, payout.pkpId, deposit.chainId, 0),
  };
}
