// Keeps a secret outside the service: encrypts it for a PKP, and later uses it inside an action without revealing it.
// Both uses are in one file because every action that a group lists with the PKP can decrypt: list only this one.
async function main({ pkpId, secret, ciphertext, challenge = "" }) {
  if (secret !== undefined) return { ciphertext: await Actions.Encrypt({ pkpId, message: secret }) };
  const opened = await Actions.Decrypt({ pkpId, ciphertext });
  const key = await crypto.subtle.importKey(
    "raw",
    new TextEncoder().encode(opened),
    { name: "HMAC", hash: "SHA-256" },
    false,
    ["sign"],
  );
  const mac = await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(challenge));
  return { mac: ethers.hexlify(new Uint8Array(mac)) };
}
