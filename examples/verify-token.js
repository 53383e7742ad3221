// Checks a token of an identity provider inside the action (ES256, key as JWK) and signs for its subject only.
const bytesOf = (text) =>
  Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (char) => char.charCodeAt(0));

async function main({ pkpId, token, jwk, audience }) {
  const [header, payload, signature] = token.split(".");
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("jwk", jwk, algorithm, false, ["verify"]);
  const isGenuine = await crypto.subtle.verify(
    algorithm,
    key,
    bytesOf(signature),
    new TextEncoder().encode(`${header}.${payload}`),
  );
  const claims = JSON.parse(new TextDecoder().decode(bytesOf(payload)));
  if (!isGenuine || claims.aud !== audience || claims.exp * 1000 < Date.now())
    throw new Error("the token is not acceptable");
  return { subject: claims.sub, signature: await Actions.signMessage({ pkpId, message: `login of ${claims.sub}` }) };
}
