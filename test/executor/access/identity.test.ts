/** Identity tokens: the identity of a verified token, and every reason to reject one. */
import { expect } from "chai";
import {
  SignJWT,
  UnsecuredJWT,
  exportJWK,
  generateKeyPair,
  type CryptoKey,
  type JWTHeaderParameters,
  type JWTPayload,
} from "jose";
import { KeywrightError } from "../../../protocol/errors";
import { IdentityVerifier } from "../../../executor/access/identity";
import { FetchFailed } from "../../../executor/fetcher/types";

const ISSUER = "https://identity.example";
const JWKS_URL = "https://identity.example/jwks";
const AUDIENCE = "keywright-client";
type Algorithm = "RS256" | "ES256" | "EdDSA" | "RS512" | "PS256" | "ES384";

/** A provider with one signing key for each algorithm; the fetcher returns its key set. */
class Provider {
  readonly keys = new Map<Algorithm, CryptoKey>();
  readonly published: object[] = [];
  fetches = 0;
  down = false;
  static async make(): Promise<Provider> {
    const provider = new Provider();
    for (const algorithm of ["RS256", "ES256", "EdDSA", "RS512", "PS256", "ES384"] as const)
      await provider.addKey(algorithm);
    return provider;
  }
  async addKey(algorithm: Algorithm, kid: string = algorithm, publish = true): Promise<void> {
    const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: true });
    this.keys.set(algorithm, privateKey as CryptoKey);
    if (publish) this.published.push({ ...(await exportJWK(publicKey)), kid, alg: algorithm, use: "sig" });
  }
  fetchJwks(url: string): Promise<string> {
    this.fetches++;
    if (this.down) return Promise.reject(new FetchFailed("timed_out", "no answer"));
    expect(url).to.equal(JWKS_URL);
    return Promise.resolve(JSON.stringify({ keys: this.published }));
  }
  token(overrides: JWTPayload = {}, header: Partial<JWTHeaderParameters> = {}): Promise<string> {
    const alg = (header.alg ?? "RS256") as Algorithm;
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: ISSUER, aud: AUDIENCE, sub: "ann", iat: now, exp: now + 300, ...overrides };
    const payload = Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== undefined));
    return new SignJWT(payload).setProtectedHeader({ alg, kid: alg, ...header }).sign(this.keys.get(alg) as CryptoKey);
  }
}

describe("an identity token", () => {
  let provider: Provider;
  let verifier: IdentityVerifier;
  const now = (): number => Math.floor(Date.now() / 1000);

  before(async () => {
    provider = await Provider.make();
  });
  beforeEach(() => {
    provider.fetches = 0;
    provider.down = false;
    verifier = new IdentityVerifier([{ issuer: ISSUER, jwksUrl: JWKS_URL, audience: AUDIENCE }], provider);
  });
  const codeOf = (token: string): Promise<string> =>
    verifier.verify(token).then(
      ({ subject }) => subject,
      (error: unknown) => (error instanceof KeywrightError ? error.code : String(error)),
    );

  for (const alg of ["RS256", "ES256", "EdDSA"] as const) {
    it(`signed with ${alg} gives its issuer and subject`, async () => {
      expect(await verifier.verify(await provider.token({}, { alg }))).to.deep.equal({
        issuer: ISSUER,
        subject: "ann",
      });
    });
  }
  for (const alg of ["RS512", "PS256", "ES384"] as const) {
    it(`signed with ${alg} is refused: only RS256, ES256 and EdDSA count`, async () => {
      expect(await codeOf(await provider.token({}, { alg }))).to.equal("invalid_identity_token");
    });
  }

  it("without a signature, or signed with a public key as a shared secret, is refused", async () => {
    const claims = { iss: ISSUER, aud: AUDIENCE, sub: "ann", iat: now(), exp: now() + 300 };
    expect(await codeOf(new UnsecuredJWT(claims).encode())).to.equal("invalid_identity_token");
    const confused = await new SignJWT(claims)
      .setProtectedHeader({ alg: "HS256", kid: "RS256" })
      .sign(Buffer.from(JSON.stringify(provider.published[0])));
    expect(await codeOf(confused)).to.equal("invalid_identity_token");
  });

  const refusals: Record<string, () => JWTPayload> = {
    "another issuer": () => ({ iss: "https://evil.example" }),
    "an issuer that only begins alike": () => ({ iss: `${ISSUER}/` }),
    "another audience": () => ({ aud: "someone-else" }),
    "a second audience": () => ({ aud: [AUDIENCE, "someone-else"] }),
    "no audience": () => ({ aud: undefined }),
    "another authorised party": () => ({ azp: "someone-else" }),
    "an expiry in the past": () => ({ exp: now() - 60, iat: now() - 120 }),
    "no expiry": () => ({ exp: undefined }),
    "an issue time more than ten minutes ago": () => ({ iat: now() - 660, exp: now() + 300 }),
    "an issue time in the future": () => ({ iat: now() + 300, exp: now() + 600 }),
    "no issue time": () => ({ iat: undefined }),
    "no subject": () => ({ sub: undefined }),
    "an empty subject": () => ({ sub: "" }),
    "a subject that is not ASCII": () => ({ sub: "änn" }),
    "a subject of 256 characters": () => ({ sub: "a".repeat(256) }),
  };
  for (const [name, claims] of Object.entries(refusals)) {
    it(`with ${name} is refused`, async () => {
      expect(await codeOf(await provider.token(claims()))).to.equal("invalid_identity_token");
    });
  }

  it("is accepted with one audience in a list, the client's own azp, 255 characters of subject", async () => {
    expect(await codeOf(await provider.token({ aud: [AUDIENCE] }))).to.equal("ann");
    expect(await codeOf(await provider.token({ azp: AUDIENCE }))).to.equal("ann");
    expect(await codeOf(await provider.token({ sub: "a".repeat(255) }))).to.equal("a".repeat(255));
  });

  it(
    "is accepted with the type JWT and refused with any other: access, logout and proof " +
      "tokens have the same signer",
    async () => {
      expect(await codeOf(await provider.token({}, { typ: "JWT" }))).to.equal("ann");
      for (const typ of [
        "at+jwt",
        "AT+JWT",
        "application/at+jwt",
        "logout+jwt",
        "dpop+jwt",
        "secevent+jwt",
        "JOSE",
        "",
      ]) {
        expect(await codeOf(await provider.token({}, { typ })), typ).to.equal("invalid_identity_token");
      }
    },
  );

  it("is refused with a changed payload, and so is any other text", async () => {
    const [header = "", , signature = ""] = (await provider.token()).split(".");
    const forged = Buffer.from(
      JSON.stringify({ iss: ISSUER, aud: AUDIENCE, sub: "bob", iat: now(), exp: now() + 300 }),
    ).toString("base64url");
    for (const text of [`${header}.${forged}.${signature}`, "", "a.b.c", "{}", "x".repeat(20_000)])
      expect(await codeOf(text)).to.equal("invalid_identity_token");
  });

  it(
    "signed with an unpublished key is refused after one refresh of the key set, and repeated attempts cause no " +
      "further refreshes",
    async () => {
      const stranger = await Provider.make();
      expect(await codeOf(await stranger.token())).to.equal("invalid_identity_token");
      const looks = provider.fetches;
      for (let i = 0; i < 5; i++)
        expect(await codeOf(await stranger.token({}, { kid: `unknown-${i}` }))).to.equal("invalid_identity_token");
      expect(looks).to.equal(1);
      expect(provider.fetches).to.equal(1);
    },
  );

  it("is neither accepted nor called invalid while the provider's keys cannot be read", async () => {
    provider.down = true;
    expect(await codeOf(await provider.token())).to.equal("identity_provider_unavailable");
    provider.down = false;
    expect(await codeOf(await provider.token())).to.equal("ann");
  });

  it("fetches the key set once for many concurrent tokens", async () => {
    const tokens = await Promise.all(Array.from({ length: 8 }, () => provider.token()));
    expect(new Set(await Promise.all(tokens.map(codeOf)))).to.deep.equal(new Set(["ann"]));
    expect(provider.fetches).to.equal(1);
  });
});
