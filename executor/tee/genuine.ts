/**
 * Guards against an accident: production configured with a simulator. A fresh quote must carry fresh report data and be
 * signed, through the platform certificates in it, under Intel's root. Revocation and TCB status need Intel's
 * collateral and are checked by the outside verifier (client/verify), which is what stops a dishonest operator.
 */
import { createHash, createPublicKey, randomBytes, verify, X509Certificate, type KeyObject } from "node:crypto";
import { constants, Quote, utils } from "@phala/dcap-qvl";
import { TeeError, type TeeSource } from "./types";

const REPORT_DATA_OF_ENCLAVE = 320;
const PCK_CHAIN = 5;

/** Throws TeeError when there is no quote or it is not signed under Intel's root. */
export async function requireGenuineQuote(
  tee: TeeSource,
  rootDer: Buffer = constants.TRUSTED_ROOT_CA_DER,
): Promise<void> {
  const answer = await tee.quote(randomBytes(64)).catch((cause: unknown) => {
    throw new TeeError("malformed", "the guest agent gives no quote over fresh report data: is it a simulator?", {
      cause,
    });
  });
  if (!isGenuine(Buffer.from(answer.quote, "hex"), rootDer)) {
    throw new TeeError(
      "malformed",
      "the guest agent's quotes are not signed under Intel's root: production needs a real TEE",
    );
  }
}

function isGenuine(bytes: Buffer, rootDer: Buffer): boolean {
  try {
    const quote = Quote.parse(bytes);
    const auth = quote.authData.intoV3();
    // Without a certificate chain (encrypted PPID) the certificate must be fetched from outside: not judged here.
    if (auth.certificationData.certType !== PCK_CHAIN) return true;
    const leaf = leafUnder(Buffer.from(auth.certificationData.body), new X509Certificate(rootDer));
    const bound = createHash("sha256").update(auth.ecdsaAttestationKey).update(auth.qeAuthData).digest();
    const report = Buffer.from(auth.qeReport);
    return (
      signedBy(leaf, report, auth.qeReportSignature) &&
      report.subarray(REPORT_DATA_OF_ENCLAVE, REPORT_DATA_OF_ENCLAVE + 32).equals(bound) &&
      signedBy(p256(auth.ecdsaAttestationKey), bytes.subarray(0, quote.signedLength()), auth.ecdsaSignature)
    );
  } catch {
    return false;
  }
}

/** The public key of the first certificate of a PEM chain. Each must be issued by the next, the last by the root. */
function leafUnder(pem: Buffer, root: X509Certificate): KeyObject {
  const chain = utils.extractCerts(pem).map((der) => new X509Certificate(der));
  const [leaf] = chain;
  const holds = chain.every((certificate, index) => {
    const issuer = chain[index + 1] ?? root;
    return issuer.ca && certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
  });
  if (leaf === undefined || !holds) throw new Error("the chain does not lead to the root");
  return leaf.publicKey;
}

function p256(point: Uint8Array): KeyObject {
  const part = (from: number): string => Buffer.from(point.subarray(from, from + 32)).toString("base64url");
  return createPublicKey({ key: { kty: "EC", crv: "P-256", x: part(0), y: part(32) }, format: "jwk" });
}

function signedBy(key: KeyObject, data: Buffer, signature: Uint8Array): boolean {
  return verify("sha256", data, { key, dsaEncoding: "ieee-p1363" }, signature);
}
