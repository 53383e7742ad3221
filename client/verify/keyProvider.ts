/** Who gave the machine the application's keys: dstack measures it at boot, before any code of the application runs. */
import { z } from "zod";
import { jsonOf, Malformed } from "./types";
import { Unavailable } from "./material";

export const KEY_PROVIDER_ID = /^(0x)?([0-9a-fA-F]{2}){1,150}$/;
const measuredSchema = z.looseObject({ name: z.string().max(64), id: z.string() });

/**
 * Whoever runs the key management knows the root of all keys, so only one that the user expects counts. `payload` is
 * that of the event `key-provider`.
 */
export function checkProvider(payload: Buffer, tee: string, expected: string | undefined): string {
  const measured = measuredSchema.safeParse(jsonOf(payload.toString("utf8"), "the event key-provider"));
  if (!measured.success) throw new Malformed("the event key-provider names no source of keys");
  const { name, id } = measured.data;
  if (tee === "simulated") throw new Unavailable("SIMULATED: the service states that its key management is simulated");
  if (name !== "kms" || !KEY_PROVIDER_ID.test(id))
    throw new Malformed(`the keys come from "${name}", not from a key management that asks the allow-list`);
  if (expected === undefined)
    throw new Unavailable(`no id given to compare with (--key-provider); the keys come from ${id}`);
  if (bare(id) !== bare(expected)) throw new Malformed(`the keys come from another key management, ${id}`);
  return `the keys come from ${id}`;
}

const bare = (hex: string): string => hex.toLowerCase().replace(/^0x/, "");
