/** The signature chain of a quote is checked by the verifier on one's own machine: a page that the service itself has sent could say anything about it. */
import { z } from "zod";

export const collateralSchema = z.never();

export class NoCollateral extends Error {}

export async function verifySignature(): Promise<string> {
  throw new NoCollateral("checked by the command below, on your own machine");
}
