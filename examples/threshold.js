// Signs an order to pay when at least NEEDED of several independent conditions hold, and says which did. APPROVERS (two
// addresses) and NEEDED are defined in the text put before this file: they are part of its CID, and no caller chooses
// them. The text that is signed is made from what the conditions look at: no caller has anything else signed.
const CONDITIONS = {
  "approved by the first approver": ({ message, approvals }) => isApprovedBy(APPROVERS[0], message, approvals),
  "approved by the second approver": ({ message, approvals }) => isApprovedBy(APPROVERS[1], message, approvals),
  "inside office hours (UTC)": () => new Date().getUTCHours() >= 8 && new Date().getUTCHours() < 18,
  "the amount is small": ({ amount }) => amount <= 100,
};

function isApprovedBy(approver, message, approvals) {
  return approvals.some((signature) => {
    try {
      return ethers.verifyMessage(message, signature) === ethers.getAddress(approver);
    } catch {
      return false;
    }
  });
}

// Whoever pays accepts each order's number once: an approval is good for one payment.
function textOf({ order, amount, payee }) {
  if (![order, amount].every((number) => Number.isSafeInteger(number) && number >= 0))
    throw new Error("order and amount must be whole numbers");
  return `order ${order}: pay ${amount} to ${ethers.getAddress(payee)}`;
}

async function main({ pkpId, order, amount, payee, approvals = [] }) {
  const message = textOf({ order, amount, payee });
  const met = Object.entries(CONDITIONS)
    .filter(([, holds]) => holds({ message, amount, approvals }))
    .map(([name]) => name);
  console.log(`${met.length} of ${NEEDED} conditions met: ${met.join(", ")}`);
  if (met.length < NEEDED) return { signed: false, message, met };
  return { signed: true, message, met, signature: await Actions.signMessage({ pkpId, message }) };
}
