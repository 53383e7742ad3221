// Signs when at least NEEDED of several independent conditions hold, and says which did. APPROVERS (two addresses) and
// NEEDED are defined in the text put before this file: they are part of its CID, and no caller chooses them.
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

async function main({ pkpId, message, amount, approvals }) {
  const met = Object.entries(CONDITIONS)
    .filter(([, holds]) => holds({ message, amount, approvals }))
    .map(([name]) => name);
  console.log(`${met.length} of ${NEEDED} conditions met: ${met.join(", ")}`);
  if (met.length < NEEDED) return { signed: false, met };
  return { signed: true, met, signature: await Actions.signMessage({ pkpId, message }) };
}
