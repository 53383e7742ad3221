// Signs a request with the secret, as many APIs require (HMAC-SHA-256). The secret cannot be computed from the MAC.
async function main({ pkpId, ciphertext, request }) {
  const secret = new TextEncoder().encode(await Actions.Decrypt({ pkpId, ciphertext }));
  const key = await crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return {
    request,
    mac: ethers.hexlify(new Uint8Array(await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(request)))),
  };
}
