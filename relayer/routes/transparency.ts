/**
 * Publicly verifiable facts: TEE info, quotes, and evidence of the TLS certificate. Info and quotes come from the
 * executor; the relayer only forwards them.
 */
import { clientNetwork } from "../../protocol/clientGroup";
import { KeywrightError } from "../../protocol/errors";
import { Crowded, FairShare, inScope } from "../../protocol/fairShare";
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

/** One at a time: the guest agent has room for as many others, the ingress's certificate and the facts of /info. */
const quotes = new FairShare({ total: 1, mostWaiting: 16, crowdOf: (network) => network });

export type TransparencyRoute = "info" | "attestation" | "evidences" | "evidence";

export function transparencyRoutes({ executor, evidences }: TransparencyDeps): HandlersOf<TransparencyRoute> {
  const folderFor = evidenceGate(executor, evidences);
  return {
    info: async ({ requestId, signal }) => {
      const { tee, dstack, config, sandbox, rootCommitment } = await executor.call("info", {}, { requestId, signal });
      return { ...dstack, tee, root_commitment: rootCommitment, config, sandbox };
    },
    attestation: async ({ query, address, requestId, signal }) => {
      const nonce = query.nonce?.toLowerCase();
      const quote = () => executor.call("attestation", defined({ nonce }), { requestId, signal });
      // Without a nonce it is kept for all.
      return nonce === undefined ? quote() : inItsTurn(clientNetwork(address), signal, quote);
    },
    evidences: async (call) => {
      const names = await (await folderFor(call)).list();
      return { contentType: "text/html; charset=utf-8", content: listingOf(names) };
    },
    evidence: async (call) => (await folderFor(call)).read(call.params.file),
  };
}

function inItsTurn<T>(network: string, signal: AbortSignal, quote: () => Promise<T>): Promise<T> {
  return inScope(network, signal, async (scope) => {
    await scope.take(quotes);
    return quote();
  }).catch((error: unknown) => {
    if (error instanceof KeywrightError) throw error;
    // Or its client has left.
    const retryAfterSeconds = error instanceof Crowded ? error.retryAfterSeconds : 1;
    throw new KeywrightError("attestation_unavailable", "Too many quotes are asked for.", {}, { retryAfterSeconds });
  });
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
