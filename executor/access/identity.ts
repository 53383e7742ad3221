/** OIDC ID tokens as credentials. The keyholder verifies the raw token on every use. */
import { createLocalJWKSet, decodeJwt, errors, jwtVerify, type JSONWebKeySet, type JWTPayload } from "jose";
import { KeywrightError } from "../../protocol/errors";
import type { IdentityIssuer } from "../config";
import type { Fetcher } from "../fetcher/types";

export interface Identity {
  readonly issuer: string;
  readonly subject: string;
}

type KeySet = ReturnType<typeof createLocalJWKSet>;

const ALGORITHMS = ["RS256", "ES256", "EdDSA"];
const MAX_TOKEN_CHARS = 16_384;
const MAX_TOKEN_AGE = "10 minutes";
const CLOCK_TOLERANCE_SECONDS = 10;
const KEY_SET_LIFE_MS = 10 * 60_000;
/** A token with an unknown key refreshes the key set, at most this often: forged tokens must not cause many fetches. */
const KEY_SET_REFRESH_MS = 30_000;
/** OIDC Core §2: a subject has at most 255 ASCII characters. */
const SUBJECT = /^[\x20-\x7e]{1,255}$/;

export class IdentityVerifier {
  readonly #providers: ReadonlyMap<string, Provider>;

  constructor(issuers: readonly IdentityIssuer[], fetcher: Pick<Fetcher, "fetchJwks">) {
    this.#providers = new Map(issuers.map((issuer) => [issuer.issuer, new Provider(issuer, fetcher)]));
  }

  /** @throws KeywrightError `invalid_identity_token`, `identity_provider_unavailable`. */
  async verify(token: string): Promise<Identity> {
    if (token.length > MAX_TOKEN_CHARS) throw refused(`it is longer than ${MAX_TOKEN_CHARS} characters`);
    const issuer = issuerOf(token);
    const provider = this.#providers.get(issuer);
    if (provider === undefined) throw refused("its issuer is not one this service accepts");
    return { issuer, subject: await provider.subjectOf(token) };
  }
}

class Provider {
  #keys: { set: KeySet; fetchedAt: number } | undefined;
  #fetching: Promise<KeySet> | undefined;
  readonly #facts: IdentityIssuer;
  readonly #fetcher: Pick<Fetcher, "fetchJwks">;

  constructor(facts: IdentityIssuer, fetcher: Pick<Fetcher, "fetchJwks">) {
    this.#facts = facts;
    this.#fetcher = fetcher;
  }

  async subjectOf(token: string): Promise<string> {
    const payload = await this.#verifySignature(token);
    this.#requireAudience(payload);
    if (payload.sub === undefined || !SUBJECT.test(payload.sub)) throw refused("sub must be 1 to 255 ASCII characters");
    return payload.sub;
  }

  /** A missing key may be new: the key set is fetched once more before the token is refused. */
  async #verifySignature(token: string): Promise<JWTPayload> {
    try {
      return await this.#verifyWith(token, await this.#keySet(KEY_SET_LIFE_MS));
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw asRefusal(error);
    }
    return this.#verifyWith(token, await this.#keySet(KEY_SET_REFRESH_MS)).catch((error: unknown) => {
      throw asRefusal(error);
    });
  }

  async #verifyWith(token: string, keys: KeySet): Promise<JWTPayload> {
    const { payload, protectedHeader } = await jwtVerify(token, keys, {
      issuer: this.#facts.issuer,
      audience: this.#facts.audience,
      algorithms: ALGORITHMS,
      requiredClaims: ["exp", "iat", "sub"],
      maxTokenAge: MAX_TOKEN_AGE,
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
    });
    // Access, logout and proof tokens are signed with the same keys and may have the same claims.
    const { typ } = protectedHeader;
    if (typ !== undefined && typ !== "JWT")
      throw refused("its type must be JWT or absent: it is another kind of token than an ID token");
    return payload;
  }

  /** `aud` must be this service alone, and a token issued to another party (`azp`) is refused. */
  #requireAudience(payload: JWTPayload): void {
    const audiences = Array.isArray(payload.aud) ? payload.aud : [payload.aud];
    if (audiences.length !== 1 || audiences[0] !== this.#facts.audience)
      throw refused("aud must name this service alone");
    if (payload.azp !== undefined && payload.azp !== this.#facts.audience)
      throw refused("azp must be this service when it is present");
  }

  async #keySet(maxAgeMs: number): Promise<KeySet> {
    if (this.#keys !== undefined && performance.now() - this.#keys.fetchedAt < maxAgeMs) return this.#keys.set;
    this.#fetching ??= this.#fetchKeys().finally(() => (this.#fetching = undefined));
    return this.#fetching;
  }

  async #fetchKeys(): Promise<KeySet> {
    try {
      const set = createLocalJWKSet(JSON.parse(await this.#fetcher.fetchJwks(this.#facts.jwksUrl)) as JSONWebKeySet);
      this.#keys = { set, fetchedAt: performance.now() };
      return set;
    } catch (cause) {
      throw new KeywrightError(
        "identity_provider_unavailable",
        "The identity provider's keys could not be read.",
        {},
        { cause, retryAfterSeconds: 5 },
      );
    }
  }
}

/** Read before verification to choose the key set; the verification checks it again. */
function issuerOf(token: string): string {
  try {
    return decodeJwt(token).iss ?? "";
  } catch {
    throw refused("it is not a signed JWT");
  }
}

function asRefusal(error: unknown): unknown {
  if (error instanceof errors.JWTClaimValidationFailed) return refused(`${error.claim}: ${error.reason}`);
  return error instanceof errors.JOSEError ? refused(error.code) : error;
}

function refused(why: string): KeywrightError {
  return new KeywrightError("invalid_identity_token", `The identity token was not accepted: ${why}.`);
}
