// Reads a contract through an RPC endpoint of your choice, and signs what it saw.
const ERC20 = ["function balanceOf(address) view returns (uint256)", "function symbol() view returns (string)"];

async function main({ pkpId, rpcUrl, token, holder }) {
  const provider = new ethers.JsonRpcProvider(rpcUrl, undefined, { staticNetwork: true });
  const contract = new ethers.Contract(token, ERC20, provider);
  const [balance, symbol, block] = await Promise.all([
    contract.balanceOf(holder),
    contract.symbol(),
    provider.getBlockNumber(),
  ]);
  const statement = `${holder} holds ${balance} ${symbol} at block ${block}`;
  return { statement, signature: await Actions.signMessage({ pkpId, message: statement }) };
}
