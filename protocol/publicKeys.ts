/**
 * Signed statements of a PKP's public keys. The signing key's public part is in the config document, which a quote
 * covers: the statement is as trustworthy as the TEE, whichever intermediary passed it on.
 */
import canonicalize from "canonicalize";
import { z } from "zod";
import { CURVES } from "./curves";

const STATEMENT_TAG = "public-keys/v1\n";

const base64url = z.string().regex(/^[A-Za-z0-9_-]{43}$/);
const hexBytes = z.string().regex(/^0x([0-9a-f]{2})+$/);

const jwkSchema = z.strictObject({
  kty: z.enum(["EC", "OKP"]),
  crv: z.enum(["secp256k1", "Ed25519", "P-256"]),
  x: base64url,
  y: base64url.optional(),
});
export type Jwk = z.infer<typeof jwkSchema>;

export const publicKeySchema = z.strictObject({
  curve: z.enum(CURVES).meta({ description: "The name that `getPublicKey` takes." }),
  public_key: hexBytes.meta({
    description:
      "65 bytes (04, x, y) for secp256k1 and p256; 32 bytes for ed25519 and, x-only and not tweaked, for bip340.",
  }),
  jwk: jwkSchema.optional().meta({ description: "The same key as a JWK; bip340 has no such form." }),
  addresses: z
    .strictObject({
      ethereum: z.string().optional(),
      solana: z.string().optional(),
      bitcoin_p2tr: z.string().optional(),
      bitcoin_testnet_p2tr: z.string().optional(),
    })
    .meta({
      description:
        "Addresses made from this key. Those of Bitcoin pay to the key alone (BIP-86): sign with an empty merkleRoot.",
    }),
});
export type PublicKeyEntry = z.infer<typeof publicKeySchema>;

/** The statement and its attestation: an Ed25519 public key and its signature over `statementBytes`. */
export const publicKeysSchema = z.strictObject({
  key_namespace: z.string().regex(/^0x[0-9a-f]{64}$/),
  pkp_id: z.string().regex(/^0x[0-9a-fA-F]{40}$/),
  derivation_path: z.string().regex(/^0x[0-9a-f]{64}$/),
  keys: z.array(publicKeySchema),
  attestation: z.strictObject({
    public_key: z
      .string()
      .regex(/^0x[0-9a-f]{64}$/)
      .meta({
        description:
          "The executor's statement key (Ed25519); `statement_key` of the config document in " +
          "`/info`, which quotes cover.",
      }),
    signature: z
      .string()
      .regex(/^0x[0-9a-f]{128}$/)
      .meta({ description: "Ed25519 over `public-keys/v1`, a line feed, and the JCS form of the four other members." }),
  }),
});
export type PublicKeysAnswer = z.infer<typeof publicKeysSchema>;
export type PublicKeysStatement = Omit<PublicKeysAnswer, "attestation">;

/** The signed bytes: a tag, then the JCS form (RFC 8785) of exactly these four members. */
export function statementBytes({ key_namespace, pkp_id, derivation_path, keys }: PublicKeysStatement): Buffer {
  return Buffer.from(STATEMENT_TAG + (canonicalize({ key_namespace, pkp_id, derivation_path, keys }) ?? ""), "utf8");
}
