/**
 * The signature chain of a quote is checked only by the verifier on the user's own machine: a page served by the
 * service could claim anything.
 */
import { z } from "zod";

export const collateralSchema = z.never();

export class NoCollateral extends Error {}

export async function verifySignature(): Promise<string> {
  throw new NoCollateral("checked by the command below, on your own machine");
}
