/**
 * The keyholder's interface to the TEE: a source of root key, quotes and info, and the attestation built from them.
 * Use: `openTee({kind, endpoint})` at start, `buildConfigDocument(facts)` once the facts are known, `attest(tee, facts,
 * request)` per call.
 */
import { attestationReportData, configDigest, NO_LEAF, REPORT_DATA_BYTES } from "../../protocol/attestation";
import type { ExecutorAnswer, ExecutorRequest } from "../../protocol/executor";
import { type ConfigDocument } from "./configDocument";
import { DstackSource } from "./dstack";
import { noTee } from "./none";
import { tlsLeafDigest } from "./tlsLeaf";
import { TeeError, type TeeKind, type TeeSource } from "./types";
import { defined } from "../../protocol/defined";

export { buildConfigDocument, type ConfigDocument } from "./configDocument";
export { requireGenuineQuote } from "./genuine";
export { TeeError, type TeeKind, type TeeSource } from "./types";

export interface TeeOptions {
  kind: TeeKind;
  /**
   * The guest agent's Unix socket or http(s) address; required unless `kind` is none. No default: only the
   * configuration may choose it.
   */
  endpoint?: string;
  timeoutMs?: number;
}

export function openTee({ kind, endpoint, timeoutMs }: TeeOptions): TeeSource {
  if (kind === "none") return noTee;
  if (!endpoint)
    throw new TeeError(
      "not_configured",
      `TEE=${kind} needs DSTACK_ENDPOINT (the guest agent's socket, for example /var/run/dstack.sock)`,
    );
  return new DstackSource(kind, { endpoint, ...defined({ timeoutMs }) });
}

/**
 * Answers the executor's `attestation` call. `tlsCertFile` is the PEM file that the TLS ingress serves; without it the
 * quote binds no certificate.
 */
export async function attest(
  tee: TeeSource,
  facts: { config: ConfigDocument; tlsCertFile?: string },
  { nonce }: ExecutorRequest<"attestation">,
): Promise<ExecutorAnswer<"attestation">> {
  if (nonce === undefined) return answerOf(tee, attestationReportData({ config: facts.config }));
  const leaf = await tlsLeafDigest(facts.tlsCertFile);
  const reportData = attestationReportData({
    config: facts.config,
    nonce: Buffer.from(nonce, "hex"),
    ...defined({ tlsLeafDigest: leaf }),
  });
  return {
    ...(await answerOf(tee, reportData)),
    config_sha256: configDigest(facts.config).toString("hex"),
    tls_leaf_sha256: (leaf ?? NO_LEAF).toString("hex"),
  };
}

/**
 * Answers the `evidenceQuote` call of the TLS ingress, so that the ingress needs no access to the guest agent and its
 * keys.
 */
export async function quoteEvidence(
  tee: TeeSource,
  { sha256 }: ExecutorRequest<"evidenceQuote">,
): Promise<ExecutorAnswer<"evidenceQuote">> {
  return answerOf(tee, Buffer.concat([Buffer.from(sha256, "hex"), Buffer.alloc(REPORT_DATA_BYTES / 2)]));
}

async function answerOf(tee: TeeSource, reportData: Buffer): Promise<ExecutorAnswer<"attestation">> {
  return { ...(await tee.quote(reportData)), report_data: reportData.toString("hex") };
}
