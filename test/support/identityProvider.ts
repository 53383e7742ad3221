/** An identity provider on this machine: publishes its keys, signs ID tokens, and can issue invalid ones. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { SignJWT, exportJWK, generateKeyPair, type JWTPayload } from "jose";

export interface IdentityProvider {
  /** An entry of IDENTITY_ISSUERS. */
  readonly issuer: { readonly issuer: string; readonly jwksUrl: string; readonly audience: string };
  /**
   * A token of this subject, fresh and valid unless the claims change that; `signedBy: "stranger"` uses a key that is
   * not published.
   */
  token(subject: string, claims?: JWTPayload, signedBy?: "provider" | "stranger"): Promise<string>;
  stop(): void;
}

const ALGORITHM = "ES256";
const KEY_ID = "test-key";

export async function startIdentityProvider(): Promise<IdentityProvider> {
  const keys = { provider: await generateKeyPair(ALGORITHM), stranger: await generateKeyPair(ALGORITHM) };
  const published = {
    keys: [{ ...(await exportJWK(keys.provider.publicKey)), kid: KEY_ID, alg: ALGORITHM, use: "sig" }],
  };
  const server = createServer((_request, response) =>
    response.setHeader("content-type", "application/json").end(JSON.stringify(published)),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const issuer = { issuer: url, jwksUrl: `${url}/jwks`, audience: "keywright-test" };
  return {
    issuer,
    token: (subject, claims = {}, signedBy = "provider") => {
      const now = Math.floor(Date.now() / 1000);
      const payload = { iss: issuer.issuer, aud: issuer.audience, sub: subject, iat: now, exp: now + 300, ...claims };
      return new SignJWT(payload).setProtectedHeader({ alg: ALGORITHM, kid: KEY_ID }).sign(keys[signedBy].privateKey);
    },
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
