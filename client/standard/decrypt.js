// Decrypts what was encrypted for the PKP, and shows it to whoever may run this.
// Parameters: pkpId, ciphertext. Response: the text.
async function main({ pkpId, ciphertext }) {
  return Actions.Decrypt({ pkpId, ciphertext });
}
