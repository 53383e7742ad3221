/** Changes of triggers in both modes. */
import type { Body } from "../../../client";
import { attemptName, type Change } from "../../changes/change";
import { byApi } from "../../changes/operations";
import { attempted } from "../../session/attempts";
import { quoted, short } from "../../components/text";
import { sentenceOf } from "./sentences";
import type { Trigger } from "./stopped";

export type Fields = Body<"createTrigger">;

interface MadeTrigger {
  readonly id: string;
  readonly hook_secret?: string | undefined;
}

/** The sender of a hook proves itself with a secret that the service makes. */
const isSecret = ({ hook }: Fields): boolean => hook !== undefined && hook.verification !== "none";

export function createTrigger(fields: Fields): Change<MadeTrigger> {
  const api = byApi("createTrigger", fields);
  return {
    title: `Create the trigger ${quoted(fields.name, "without a name")}`,
    words: [
      ["Name", fields.name],
      ["Fires", sentenceOf(fields as unknown as Trigger)],
    ],
    signedFirst: {
      type: "BillingAuth",
      why:
        "First your wallet signs in to the service, unless it just did, to request the trigger's key, which stays in " +
        "the TEE. The trigger acts once you send the transaction that attaches it.",
    },
    secret: isSecret(fields)
      ? { kind: "trigger", label: fields.name, in: ({ hook_secret: secret }) => secret }
      : undefined,
    touches: ["keys", "account"],
    ...api,
    viaChain: (owner, keep) =>
      attempted(attemptName(owner.accountId, api.request), async (options) => {
        const { minted, write } = await owner.prepareTrigger(fields, options);
        await keep(minted);
        return { ...write, resultOf: () => minted };
      }),
  };
}

export function deleteTrigger({ id, name, api_key_hash }: Trigger): Change {
  return {
    title: `Delete the trigger ${quoted(name, short(id))}`,
    words: [["Key", api_key_hash]],
    touches: ["keys", "account"],
    ...byApi("deleteTrigger", { id }),
    viaChain: ({ prepare }) => prepare.removeUsageApiKey({ usage_api_key: api_key_hash }),
  };
}
