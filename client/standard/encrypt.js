// Encrypts a text for the PKP: every action that a group lists together with the PKP can decrypt it.
// Parameters: pkpId, message. Response: the ciphertext.
async function main({ pkpId, message }) {
  return Actions.Encrypt({ pkpId, message });
}
