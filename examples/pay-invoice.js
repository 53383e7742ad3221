// Pays an invoice when a contract's event says so, up to a limit that the code sets. As a trigger:
//   { "event": { "address": "0x…", "topics": [keccak256("InvoiceApproved(address,uint256)")], "confirmations": 12 },
//     "params": { "pkpId": "0x…", "nonce": 0, "chainId": 1 }, "balance": "500" }
// The keyholder has read the log itself; its data is the payee and the amount. A key that runs this action directly
// writes `trigger` itself: let no other key than the trigger's run it.
const MOST = ethers.parseEther("0.1");

async function main({ pkpId, trigger, nonce, chainId, maxFeePerGas = "20000000000" }) {
  if (trigger?.event === undefined) return { paid: false };
  const [to, value] = ethers.AbiCoder.defaultAbiCoder().decode(["address", "uint256"], trigger.event.data);
  if (value > MOST) throw new Error(`${value} wei is more than this action pays (${MOST})`);
  const fees = { maxFeePerGas, maxPriorityFeePerGas: "1000000000", gasLimit: 21000 };
  const transaction = { type: 2, chainId, nonce, to, value: String(value), ...fees };
  return { paid: true, raw: await Actions.signTransaction({ pkpId, transaction }) };
}
