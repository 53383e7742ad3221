// Checks a token of an identity provider inside the action (ES256, key as JWK) and signs for its subject only. JWK and
// AUDIENCE are defined in the text put before this file: they are part of its CID, and no caller can bring a key of its
// own.
const bytesOf = (text) =>
  Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (char) => char.charCodeAt(0));

async function main({ pkpId, token }) {
  const [header, payload, signature] = token.split(".");
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("jwk", JWK, algorithm, false, ["verify"]);
  const isGenuine = await crypto.subtle.verify(
    algorithm,
    key,
    bytesOf(signature),
    new TextEncoder().encode(`${header}.${payload}`),
  );
  const { sub, aud, exp } = JSON.parse(new TextDecoder().decode(bytesOf(payload)));
  // A time that is missing is never past.
  const isLive = typeof exp === "number" && exp * 1000 > Date.now();
  if (!isGenuine || aud !== AUDIENCE || typeof sub !== "string" || !isLive)
    throw new Error("the token is not acceptable");
  return { subject: sub, signature: await Actions.signMessage({ pkpId, message: `login of ${sub}` }) };
}
