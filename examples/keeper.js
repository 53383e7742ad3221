// A keeper: calls a contract each hour, and only if the contract says that there is work. As a trigger:
//   { "schedule": { "cron": "0 * * * *" }, "params": { "pkpId": "0x…", "rpcUrl": "https://…", "contract": "0x…" },
//     "balance": "500" }
async function main({ pkpId, rpcUrl, contract, chainId = 1 }) {
  const provider = new ethers.JsonRpcProvider(rpcUrl, chainId, { staticNetwork: true });
  const keeper = new ethers.Contract(contract, ["function due() view returns (bool)", "function work()"], provider);
  if (!(await keeper.due())) return { sent: false };
  const [nonce, fees, gasLimit] = await Promise.all([
    provider.getTransactionCount(pkpId),
    provider.getFeeData(),
    keeper.work.estimateGas({ from: pkpId }),
  ]);
  const { maxFeePerGas, maxPriorityFeePerGas } = fees;
  const transaction = {
    ...{ type: 2, to: contract, data: keeper.interface.encodeFunctionData("work"), value: "0" },
    ...{ chainId, nonce, gasLimit: String(gasLimit) },
    ...{ maxFeePerGas: String(maxFeePerGas), maxPriorityFeePerGas: String(maxPriorityFeePerGas) },
  };
  const raw = await Actions.signTransaction({ pkpId, transaction });
  return { sent: true, hash: (await provider.broadcastTransaction(raw)).hash };
}
