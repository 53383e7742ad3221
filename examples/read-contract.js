// Reads a contract, and signs what it saw. RPC_URL and TOKEN are defined in the text put before this file: they are
// part of its CID, so that no caller has another token's balance signed, or what another endpoint says.
const ERC20 = ["function balanceOf(address) view returns (uint256)", "function symbol() view returns (string)"];

async function main({ pkpId, holder }) {
  const provider = new ethers.JsonRpcProvider(RPC_URL, undefined, { staticNetwork: true });
  const contract = new ethers.Contract(TOKEN, ERC20, provider);
  const account = ethers.getAddress(holder);
  const [balance, symbol, block] = await Promise.all([
    contract.balanceOf(account),
    contract.symbol(),
    provider.getBlockNumber(),
  ]);
  const statement = `${account} holds ${balance} ${symbol} at block ${block}`;
  return { statement, signature: await Actions.signMessage({ pkpId, message: statement }) };
}
