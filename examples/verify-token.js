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
  const claims = JSON.parse(new TextDecoder().decode(bytesOf(payload)));
  if (!isGenuine || claims.aud !== AUDIENCE || claims.exp * 1000 < Date.now())
    throw new Error("the token is not acceptable");
  return { subject: claims.sub, signature: await Actions.signMessage({ pkpId, message: `login of ${claims.sub}` }) };
}
