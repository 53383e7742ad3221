// Encrypts a secret for the PKP. Who runs this knows the secret already; nobody else learns it from the answer.
async function main({ pkpId, secret }) {
  if (typeof secret !== "string" || secret === "") throw new Error("secret must be a text");
  return { ciphertext: await Actions.Encrypt({ pkpId, message: secret }) };
}
