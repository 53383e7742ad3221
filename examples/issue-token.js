// Issues a token (a JWT with ES256) that any library can check with the PKP's P-256 key, which GET /public_keys returns
// as a JWK.
const LONGEST_SECONDS = 3_600;

const encode = (value) =>
  ethers
    .encodeBase64(ethers.toUtf8Bytes(JSON.stringify(value)))
    .replace(/\+/g, "-")
    .replace(/\//g, "_")
    .replace(/=+$/, "");

async function main({ pkpId, subject, audience, seconds = 300 }) {
  // A text would pass comparisons, too, and then be put behind the time instead of added to it.
  if (!(Number.isInteger(seconds) && seconds > 0 && seconds <= LONGEST_SECONDS))
    throw new Error(`a token lives a whole number of seconds, at most ${LONGEST_SECONDS} seconds`);
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss: pkpId, sub: subject, aud: audience, iat: now, exp: now + seconds };
  const message = `${encode({ alg: "ES256", typ: "JWT" })}.${encode(claims)}`;
  const signature = await Actions.signP256({ pkpId, message });
  const text = ethers.encodeBase64(signature).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  return { token: `${message}.${text}` };
}
