// Signs calls of the functions listed, of the contracts listed, with arguments within the rules, on one chain.
// Parameters: pkpId, transaction, approvals. Response: the raw signed transaction.
async function main({ pkpId, transaction: given, approvals }) {
  withinHours();
  const transaction = checkedTransaction(given);
  const selector = transaction.data.slice(0, 10);
  const call = POLICY.calls.find((one) => one.to === transaction.to && ethers.id(one.function).slice(0, 10) === selector);
  if (call === undefined) refuse("this function of this contract is not on the list");
  if (BigInt(transaction.value) > BigInt(call.max)) refuse(`transaction.value is above ${call.max}`);
  const values = checkArguments(call, transaction.data);
  return signTransaction(pkpId, transaction, approvals, (field) => amountIn(call, transaction, values, field));
}

// Decoded, checked and encoded again: calldata that is not what its arguments encode to (dirty bits, shared or overlapping tails, bytes behind the end) is refused.
const checkArguments = (call, data) => {
  const contract = new ethers.Interface([`function ${call.function}`]);
  const fragment = contract.getFunction(data.slice(0, 10));
  let values;
  try {
    values = [...contract.decodeFunctionData(fragment, data)];
    if (contract.encodeFunctionData(fragment, values) !== data) refuse("transaction.data is not in its canonical form");
  } catch {
    return refuse("transaction.data is not in its canonical form");
  }
  // A text is compared as it is: "0xAB" and "0xab" are two texts, but one value of bytes.
  const text = (i) => (fragment.inputs[i].type === "string" ? values[i] : textOf(values[i]));
  call.args.forEach((rule, i) => Object.keys(rule).length > 0 && matches(rule, text(i), `argument ${i + 1}`));
  return values;
};

// "value", or `function argument`, which a call of another function does not have.
const amountIn = (call, transaction, values, field) => {
  if (field === "value") return transaction.value;
  const [called, number] = field.split(" ");
  return called === call.function ? textOf(values[Number(number) - 1]) : "0";
};
