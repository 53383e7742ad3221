/** Changes of triggers in both modes. */
import type { Body } from "../../../client";
import type { Change } from "../../changes/change";
import { quoted, short } from "../../parts/text";
import { sentenceOf } from "./sentences";
import type { Trigger } from "./stopped";

export type Fields = Body<"createTrigger">;

export interface MadeTrigger {
  readonly id: string;
  readonly hook_secret?: string | undefined;
}

export function createTrigger(fields: Fields): Change<MadeTrigger> {
  return {
    title: `Create the trigger ${quoted(fields.name, "without a name")}`,
    words: [
      ["Name", fields.name],
      ["Fires", sentenceOf(fields as unknown as Trigger)],
    ],
    signedFirst:
      "First your wallet signs a request for the trigger's key, which stays in the TEE. The trigger acts once you " +
      "send the transaction that attaches it.",
    touches: ["keys", "account"],
    viaApi: (client, options) => client.createTrigger(fields, options),
    viaChain: async (owner) => {
      const { minted, write } = await owner.prepareTrigger(fields);
      return { write: { ...write, resultOf: () => minted }, early: minted };
    },
  };
}

export function deleteTrigger({ id, name, api_key_hash }: Trigger): Change {
  return {
    title: `Delete the trigger ${quoted(name, short(id))}`,
    words: [["Key", api_key_hash]],
    touches: ["keys", "account"],
    viaApi: (client, options) => client.deleteTrigger({ id }, options),
    viaChain: async ({ prepare }) => ({ write: await prepare.removeUsageApiKey({ usage_api_key: api_key_hash }) }),
  };
}
