// Encrypts a secret for the PKP. The caller knows the secret already; the answer reveals it to nobody else.
async function main({ pkpId, secret }) {
  if (typeof secret !== "string" || secret === "") throw new Error("secret must be a text");
  return { ciphertext: await Actions.Encrypt({ pkpId, message: secret }) };
}
