// What every policy shares. The parameters above are part of this code: its CID is the policy.
const refuse = (why) => {
  throw new Error(`policy: ${why}`);
};

// A whole number as the chain counts: a safe integer, or plain decimal or 0x-hex text. Nothing else is taken for one.
const quantity = (value, name) => {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return BigInt(value);
  if (typeof value === "string" && /^(0|[1-9][0-9]{0,77}|0x[0-9a-fA-F]{1,64})$/.test(value)) return BigInt(value);
  return refuse(`${name} is not a whole number`);
};

const address = (value, name) => (typeof value === "string" && /^0x[0-9a-fA-F]{40}$/.test(value) ? value.toLowerCase() : refuse(`${name} is not an address`));

const bytes = (value, name) => (typeof value === "string" && /^0x([0-9a-fA-F]{2})*$/.test(value) ? value.toLowerCase() : refuse(`${name} is not 0x hex`));

const isRecord = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

const onlyFields = (record, known, name) => {
  if (!isRecord(record)) refuse(`${name} is not an object`);
  for (const field of Object.keys(record)) if (!known.includes(field)) refuse(`${name}.${field} is not allowed`);
};

// One value against one rule: { in: [texts] }, { min, max } for whole numbers, or {} for anything of the type.
const matches = (rule, text, name) => {
  if (rule.in !== undefined && !rule.in.includes(text)) refuse(`${name} is not on the list`);
  if (rule.min !== undefined && BigInt(text) < BigInt(rule.min)) refuse(`${name} is below ${rule.min}`);
  if (rule.max !== undefined && BigInt(text) > BigInt(rule.max)) refuse(`${name} is above ${rule.max}`);
};

// A value of an ABI or EIP-712 type as the one text rules are written in.
const textOf = (value) => {
  if (typeof value === "bigint" || typeof value === "number" || typeof value === "boolean") return String(value);
  if (typeof value === "string") return /^0x[0-9a-fA-F]*$/.test(value) ? value.toLowerCase() : value;
  return refuse("a rule is for a value of a plain type");
};

// Counts the amount of each budget before anything is signed. The limits are part of this code, and the keyholder and the chain count: no caller, machine or crash gets around them. Who may not use the PKP spends nothing: it is asked for first.
const spendAll = async (pkpId, amountOf) => {
  if (POLICY.budgets !== undefined) await Actions.getPublicKey({ pkpId, curve: "secp256k1" });
  for (const { name, amount, limit, window } of POLICY.budgets ?? []) {
    const spent = amountOf(amount);
    if (!/^(0|[1-9][0-9]*)$/.test(spent)) refuse(`${amount} is not an amount`);
    await Actions.spend({ budget: name, amount: spent, limit, window });
  }
};

// UTC. From the first hour on, until the last one begins; over midnight when the first is the later one.
const withinHours = () => {
  if (POLICY.hours === undefined) return;
  const [from, to] = POLICY.hours;
  const hour = new Date().getUTCHours();
  const inside = from < to ? hour >= from && hour < to : hour >= from || hour < to;
  if (!inside) refuse(`signs only from ${from} to ${to} h UTC`);
};

// Each approver signs this text as a wallet signs messages. It names the policy, the PKP and exactly what is to be signed, so it is good for nothing else.
const approved = (pkpId, hash, approvals) => {
  if (POLICY.approvers === undefined) return;
  const policy = ethers.id(JSON.stringify(POLICY));
  const text = `Approve ${hash}\nby ${address(pkpId, "pkpId")}\nunder ${policy}`;
  if (!Array.isArray(approvals) || approvals.length > 64) refuse("approvals must be a list of at most 64 signatures");
  const who = new Set(approvals.map((signature) => signerOf(text, signature)));
  const count = POLICY.approvers.of.filter((one) => who.has(one)).length;
  if (count < POLICY.approvers.threshold) refuse(`${count} of ${POLICY.approvers.threshold} approvals of ${hash}; approvers sign this text:\n${text}`);
};

const signerOf = (text, signature) => {
  try {
    return ethers.verifyMessage(text, bytes(signature, "an approval")).toLowerCase();
  } catch {
    return refuse("an approval is no signature");
  }
};

// The transaction as it will be signed, from checked values alone. Types 0, 1 and 2: type 3 carries blobs, type 4 lends the account somebody's code.
const TRANSACTION = ["type", "chainId", "nonce", "gasLimit", "to", "from", "value", "data", "gasPrice", "maxFeePerGas", "maxPriorityFeePerGas", "accessList"];
const checkedTransaction = (given) => {
  onlyFields(given, TRANSACTION, "transaction");
  const { to, from, data = "0x", accessList, ...numbers } = given;
  const transaction = {};
  for (const [name, value] of Object.entries(numbers)) transaction[name] = quantity(value, `transaction.${name}`).toString();
  transaction.type ??= transaction.gasPrice === undefined ? "2" : "0";
  if (!["0", "1", "2"].includes(transaction.type)) refuse("transaction.type must be 0, 1 or 2");
  if (transaction.chainId !== POLICY.chain) refuse(`transaction.chainId is not ${POLICY.chain}`);
  if (accessList !== undefined && (!Array.isArray(accessList) || accessList.length > 0)) refuse("transaction.accessList must be empty");
  transaction.value ??= "0";
  transaction.to = address(to, "transaction.to");
  if (from !== undefined && from !== null) transaction.from = address(from, "transaction.from");
  transaction.data = bytes(data, "transaction.data");
  withinFee(transaction);
  return transaction;
};

// What the transaction can cost in gas: each has a limit, and a budget may count the sum.
const feeOf = ({ type, gasLimit = "0", gasPrice = "0", maxFeePerGas = "0" }) => BigInt(gasLimit) * BigInt(type === "2" ? maxFeePerGas : gasPrice);
const withinFee = (transaction) => {
  if (feeOf(transaction) > BigInt(POLICY.maxFee)) refuse(`the transaction may cost more than ${POLICY.maxFee} in gas`);
};

const signTransaction = async (pkpId, transaction, approvals, amountOf) => {
  const { from, ...unsigned } = transaction;
  approved(pkpId, ethers.Transaction.from({ ...unsigned, type: Number(unsigned.type), nonce: Number(unsigned.nonce) }).unsignedHash, approvals);
  await spendAll(pkpId, (field) => (field === "fee" ? feeOf(transaction).toString() : amountOf(field)));
  return Actions.signTransaction({ pkpId, transaction });
};
