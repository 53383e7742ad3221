/**
 * Code by its CID, as far as this tab knows it: what was added or run here, and the examples. In memory only: the chain
 * has the address of code, not the code.
 */
import { EXAMPLES } from "../runner/examples";

export const CID = /^(Qm[1-9A-HJ-NP-Za-km-z]{44}|b[a-z2-7]{20,})$/;

/** The CID of code, computed in this browser: it decides which code may use a PKP. */
export const cidOf = async (code: string): Promise<string> => (await import("../../../client/cid")).cidOfCode(code);

const known = new Map<string, string>();

export async function keepCode(code: string): Promise<string> {
  const cid = await cidOf(code);
  known.set(cid, code);
  return cid;
}

export async function codeOf(cid: string): Promise<string | null> {
  if (!known.has(cid)) for (const { code } of EXAMPLES) await keepCode(code);
  return known.get(cid) ?? null;
}
