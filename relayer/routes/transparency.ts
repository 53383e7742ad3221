/**
 * Publicly verifiable facts: TEE info, quotes, and evidence of the TLS certificate. Info and quotes come from the
 * executor; the relayer only forwards them.
 */
import { KeywrightError } from "../../protocol/errors";
import type { TeeKind } from "../../protocol/attestation";
import type { EvidenceFolder } from "../site/evidences";
import type { Executor } from "../executor/client";
import type { Call, HandlersOf } from "../middleware/call";
import { defined } from "../../protocol/defined";

export interface TransparencyDeps {
  readonly executor: Executor;
  /** Absent when no folder is configured. */
  readonly evidences: EvidenceFolder | undefined;
}

type TransparencyRoute = "info" | "attestation" | "evidences" | "evidence";

export function transparencyRoutes({ executor, evidences }: TransparencyDeps): HandlersOf<TransparencyRoute> {
  const folderFor = evidenceGate(executor, evidences);
  return {
    info: async ({ requestId, signal }) => {
      const { tee, dstack, config, sandbox, rootCommitment } = await executor.call("info", {}, { requestId, signal });
      return { ...dstack, tee, root_commitment: rootCommitment, config, sandbox };
    },
    attestation: async ({ query, requestId, signal }) => {
      const nonce = query.nonce?.toLowerCase();
      return executor.call("attestation", defined({ nonce }), { requestId, signal });
    },
    evidences: async (call) => {
      const names = await (await folderFor(call)).list();
      return { contentType: "text/html; charset=utf-8", content: listingOf(names) };
    },
    evidence: async (call) => (await folderFor(call)).read(call.params.file),
  };
}

/**
 * Without a TEE the evidence would prove nothing: 503, as without a folder. The kind of TEE is constant, so it is read
 * once.
 */
function evidenceGate(executor: Executor, evidences: EvidenceFolder | undefined) {
  let known: TeeKind | undefined;
  return async ({ requestId, signal }: Pick<Call<"evidences">, "requestId" | "signal">): Promise<EvidenceFolder> => {
    if (evidences === undefined)
      throw new KeywrightError("attestation_unavailable", "this deployment has no evidence files.");
    known ??= (await executor.call("info", {}, { requestId, signal })).tee;
    if (known === "none")
      throw new KeywrightError(
        "attestation_unavailable",
        "this deployment runs without a TEE; there is no evidence to show.",
      );
    return evidences;
  };
}

/** Names contain only letters, digits, dots, dashes and underscores: nothing to escape. */
function listingOf(names: readonly string[]): string {
  const lines = names.map((name) => `<a href="${name}">${name}</a>`);
  return (
    `<!doctype html>\n<html><head><title>Index of /evidences/</title></head><body><h1>Index of ` +
    `/evidences/</h1><pre>\n${lines.join("\n")}\n</pre></body></html>\n`
  );
}
