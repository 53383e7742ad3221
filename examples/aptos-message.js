// Signs in to an application of the Aptos chain: signs the text that Aptos wallets sign, with the PKP's Ed25519 key.
// Because of the prefix it cannot be a transaction.
async function main({ pkpId, application, nonce, message = "Sign in" }) {
  for (const line of [application, nonce, message])
    if (/[\r\n]/.test(line)) throw new Error("a line break would forge another field");
  const fullMessage = `APTOS\napplication: ${application}\nmessage: ${message}\nnonce: ${nonce}`;
  const publicKey = await Actions.getPublicKey({ pkpId, curve: "ed25519" });
  return { fullMessage, publicKey, signature: await Actions.signEd25519({ pkpId, message: fullMessage }) };
}
