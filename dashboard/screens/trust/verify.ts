/** The verifier's own steps (client/verify), run in this page as far as a page can. */
import { Buffer } from "buffer";
import { config } from "zod";
import type { Step } from "../../../client/verify/types";

export type { Step };

const TIMEOUT_MS = 15_000;

export async function verifyHere(): Promise<Step[]> {
  // Without this zod probes for eval, which this page's CSP forbids and reports.
  config({ jitless: true });
  // The verifier is written for Node; browser/ replaces the Node modules it uses.
  (globalThis as { Buffer?: unknown }).Buffer ??= Buffer;
  const [{ collect }, { runSteps }] = await Promise.all([
    import("../../../client/verify/material"),
    import("../../../client/verify/steps"),
  ]);
  const nonce = Buffer.from(crypto.getRandomValues(new Uint8Array(32))) as unknown as Parameters<
    typeof collect
  >[1]["nonce"];
  const material = await collect(new URL(location.origin), { nonce, timeoutMs: TIMEOUT_MS });
  return runSteps(material, { nonce, timeoutMs: TIMEOUT_MS, nowSeconds: Math.floor(Date.now() / 1000) });
}
