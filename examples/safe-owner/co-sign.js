// Signs a transaction of a Safe if it is a plain payment of at most one coin. Everything it signs is built here: it
// never signs an object from the caller.
const MOST = 10n ** 18n;
const NOBODY = "0x0000000000000000000000000000000000000000";
const TYPES = {
  SafeTx: [
    { name: "to", type: "address" },
    { name: "value", type: "uint256" },
    { name: "data", type: "bytes" },
    { name: "operation", type: "uint8" },
    { name: "safeTxGas", type: "uint256" },
    { name: "baseGas", type: "uint256" },
    { name: "gasPrice", type: "uint256" },
    { name: "gasToken", type: "address" },
    { name: "refundReceiver", type: "address" },
    { name: "nonce", type: "uint256" },
  ],
};

async function main({ pkpId, chainId, safe, to, value, nonce }) {
  const [from, payee] = [ethers.getAddress(safe), ethers.getAddress(to)];
  if (payee === from) throw new Error("the Safe does not call itself");
  if (BigInt(value) > MOST) throw new Error("more than 1 coin");
  // No data and no delegate call, and the Safe pays nobody for gas.
  const fixed = {
    data: "0x",
    operation: 0,
    safeTxGas: 0,
    baseGas: 0,
    gasPrice: 0,
    gasToken: NOBODY,
    refundReceiver: NOBODY,
  };
  const message = { to: payee, value: BigInt(value), nonce: BigInt(nonce), ...fixed };
  return Actions.signTypedData({
    pkpId,
    domain: { chainId: BigInt(chainId), verifyingContract: from },
    types: TYPES,
    message,
  });
}
