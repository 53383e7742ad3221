// Signs a request with the secret, as many APIs want it (HMAC-SHA-256). The secret leaves in no form: a request's MAC does not tell it.
async function main({ pkpId, ciphertext, request }) {
  const secret = new TextEncoder().encode(await Actions.Decrypt({ pkpId, ciphertext }));
  const key = await crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return {
    request,
    mac: ethers.hexlify(new Uint8Array(await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(request)))),
  };
}
