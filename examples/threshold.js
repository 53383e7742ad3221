// Signs when at least `needed` of several independent conditions hold, and says which did.
const CONDITIONS = {
  "approved by the first approver": ({ message, approvals }, [first]) => isApprovedBy(first, message, approvals),
  "approved by the second approver": ({ message, approvals }, [, second]) => isApprovedBy(second, message, approvals),
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

async function main({ pkpId, message, amount, approvals, approvers, needed = 2 }) {
  const met = Object.entries(CONDITIONS)
    .filter(([, holds]) => holds({ message, amount, approvals }, approvers))
    .map(([name]) => name);
  console.log(`${met.length} of ${needed} conditions met: ${met.join(", ")}`);
  if (met.length < needed) return { signed: false, met };
  return { signed: true, met, signature: await Actions.signMessage({ pkpId, message }) };
}
