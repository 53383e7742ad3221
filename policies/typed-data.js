// Signs typed data of one type, for the domains listed, with fields within the rules.
// Parameters: pkpId, domain, types, primaryType, message, approvals. Response: the signature.
async function main({ pkpId, domain, types, primaryType, message, approvals }) {
  withinHours();
  const known = POLICY.domains.find((one) => sameDomain(one, domain));
  if (known === undefined) refuse("the domain is not on the list");
  if (primaryType !== undefined && primaryType !== POLICY.primaryType) refuse(`primaryType is not ${POLICY.primaryType}`);
  checkTypes(types);
  const copy = struct(POLICY.primaryType, message, "");
  approved(pkpId, ethers.TypedDataEncoder.hash(known, POLICY.types, copy), approvals);
  await spendAll(pkpId, (field) => field.split(".").reduce((inner, name) => inner[name], copy));
  return Actions.signTypedData({ pkpId, domain: known, types: POLICY.types, primaryType: POLICY.primaryType, message: copy });
}

const sameDomain = (known, given) => {
  if (!isRecord(given)) return false;
  const fields = Object.keys(given).filter((field) => given[field] !== undefined && given[field] !== null);
  return fields.length === Object.keys(known).length && fields.every((field) => known[field] !== undefined && domainText(field, given[field]) === known[field]);
};
const domainText = (field, value) => {
  if (field === "chainId") return quantity(value, "domain.chainId").toString();
  return field === "verifyingContract" ? address(value, "domain.verifyingContract") : field === "salt" ? bytes(value, "domain.salt") : value;
};

// The caller's types must be the policy's, since they say what the fields mean.
const checkTypes = (types) => {
  if (!isRecord(types)) refuse("types is not an object");
  const { EIP712Domain, ...given } = types;
  const form = (all) => JSON.stringify(Object.keys(all).sort().map((name) => [name, (Array.isArray(all[name]) ? all[name] : refuse(`types.${name} is not a list`)).map((field) => [field.name, field.type])]));
  if (form(given) !== form(POLICY.types)) refuse("types are not the policy's");
};

// The message as it will be signed: exactly the fields of its type, each in the one form of its type.
const struct = (type, value, path) => {
  const fields = POLICY.types[type];
  onlyFields(value, fields.map(({ name }) => name), path === "" ? "message" : path);
  return Object.fromEntries(fields.map(({ name, type: inner }) => [name, part(inner, value[name], path === "" ? name : `${path}.${name}`)]));
};
const part = (type, value, path) => {
  const array = /^(.*)\[(\d*)\]$/.exec(type);
  if (array !== null) {
    if (!Array.isArray(value) || (array[2] !== "" && value.length !== Number(array[2]))) refuse(`${path} is not a list of its length`);
    return value.map((item) => part(array[1], item, path));
  }
  if (POLICY.types[type] !== undefined) return struct(type, value, path);
  const copy = scalar(type, value, path);
  const rule = POLICY.fields[path];
  // A text is compared as it is: "0xAB" and "0xab" are two texts, but one value of bytes.
  if (rule !== undefined) matches(rule, type === "string" ? copy : textOf(copy), path);
  return copy;
};
const scalar = (type, value, path) => {
  if (type === "address") return address(value, path);
  if (type === "bool") return typeof value === "boolean" ? value : refuse(`${path} is not true or false`);
  if (type === "string") return typeof value === "string" ? value : refuse(`${path} is not a text`);
  if (/^bytes/.test(type)) return bytes(value, path);
  if (/^uint/.test(type)) return quantity(value, path).toString();
  return typeof value === "string" && /^-?(0|[1-9][0-9]{0,77})$/.test(value) && value !== "-0" ? value : refuse(`${path} is not a whole number as text`);
};
