/** Checks that public keys were signed by the executor whose config document a quote covers. For Node. */
import { createPublicKey, verify } from "node:crypto";
import { statementBytes, type PublicKeysAnswer } from "../../protocol/publicKeys";

/**
 * Checks an answer of `GET /public_keys` against the attested config document (`config` of `recordService` or
 * `verifyEvidence`, which return it only where a genuine quote covers it): true when the document's statement key
 * signed exactly these keys for this PKP, and the document names their key namespace.
 * @param pkpId address of the PKP that was asked for: a genuine answer about another one is not about yours
 */
export function arePublicKeysAttested(
  answer: PublicKeysAnswer,
  config: Readonly<Record<string, unknown>>,
  pkpId: string,
): boolean {
  if (answer.pkp_id.toLowerCase() !== pkpId.toLowerCase()) return false;
  const { statement_key: key, key_namespace: namespace } = config;
  if (typeof key !== "string" || !/^0x[0-9a-f]{64}$/.test(key) || namespace !== answer.key_namespace) return false;
  const x = Buffer.from(key.slice(2), "hex").toString("base64url");
  const publicKey = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  return verify(null, statementBytes(answer), publicKey, Buffer.from(answer.attestation.signature.slice(2), "hex"));
}
