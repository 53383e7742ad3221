// Signs plain transfers: to the addresses listed, at most so much each, on one chain.
// Parameters: pkpId, transaction, approvals. Response: the raw signed transaction.
async function main({ pkpId, transaction: given, approvals }) {
  withinHours();
  const transaction = checkedTransaction(given);
  if (transaction.data !== "0x") refuse("transaction.data must be empty");
  if (!POLICY.to.includes(transaction.to)) refuse("transaction.to is not on the list");
  if (BigInt(transaction.value) > BigInt(POLICY.max)) refuse(`transaction.value is above ${POLICY.max}`);
  return signTransaction(pkpId, transaction, approvals, () => transaction.value);
}
