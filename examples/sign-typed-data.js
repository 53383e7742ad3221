// Signs EIP-712 typed data, as contracts and marketplaces ask for it.
async function main({ pkpId, amount = "1000000000000000000" }) {
  const domain = { name: "Example Mail", version: "1", chainId: 1 };
  const types = {
    Payment: [
      { name: "to", type: "address" },
      { name: "amount", type: "uint256" },
    ],
  };
  const message = { to: "0x000000000000000000000000000000000000dEaD", amount };
  const signature = await Actions.signTypedData({ pkpId, domain, types, message });
  return { signature, signer: ethers.verifyTypedData(domain, types, message, signature) };
}
