/** A project's triggers. What one is never changes: one that differs is made again, and the old one deleted. */
import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import { defined } from "../../protocol/defined";
import { parseCid } from "../../protocol/cidText";
import type { Connection } from "../cli/connection";
import { WrongUse } from "../cli/failure";
import type { Answer } from "../wire";
import type { Built } from "./build";
import type { Project } from "./project";
import type { Made, Step } from "./step";

export type Known = Pick<
  Answer<"listTriggers">[number],
  "id" | "name" | "action_ipfs_cid" | "params_sha256" | "schedule" | "event" | "hook"
>;
type Wanted = Project["config"]["triggers"][string];

export function triggerSteps(
  call: Connection["call"],
  { config }: Project,
  built: readonly Built[],
  present: readonly Known[],
): Step[] {
  return Object.entries(config.triggers).flatMap(([name, wanted]): Step[] => {
    const cid = built.find(({ action }) => action === wanted.action)?.cid ?? parseCid(wanted.action);
    if (cid === undefined)
      throw new WrongUse(`The trigger ${name} runs ${wanted.action}, which is no action of the project and no CID.`);
    const known = present.find((one) => one.name === name);
    if (known !== undefined && isSame(known, wanted, cid)) return [];
    const run = async (made: Made): Promise<void> => {
      const { hook_secret } = (await call(
        "createTrigger",
        fieldsOf(name, wanted, cid, made),
      )) as Answer<"createTrigger">;
      if (hook_secret !== undefined) made.secrets[`${name}-hook`] = hook_secret;
      if (known !== undefined) await call("deleteTrigger", { id: known.id });
    };
    return [
      known === undefined
        ? { mark: "+", text: `trigger ${name}`, run }
        : { mark: "~", text: `trigger ${name}: made again`, run },
    ];
  });
}

function fieldsOf(name: string, wanted: Wanted, cid: string, made: Made): object {
  const { params, schedule, event, hook, execute, balance, expiration } = wanted;
  const groups = execute.map((group) => made.groups.get(group) ?? "");
  return {
    ...{ name, action_ipfs_cid: cid, params },
    ...defined({ schedule, event, hook, balance, expiration }),
    ...(groups.length === 0 ? {} : { execute_in_groups: groups }),
  };
}

/** The service shows neither params nor secrets: a secret that changes in the file alone is not noticed. */
function isSame(known: Known, { params, schedule, event, hook }: Wanted, cid: string): boolean {
  const hash = createHash("sha256").update(JSON.stringify(params), "utf8").digest("hex");
  const shown = (
    one: Pick<Known, "schedule" | "event" | "hook"> | Pick<Wanted, "schedule" | "event" | "hook">,
  ): unknown => {
    const { verification, respond, missed } = one.hook ?? {};
    return canonicalize({ schedule: one.schedule, event: one.event, ...defined({ verification, respond, missed }) });
  };
  return (
    known.action_ipfs_cid === cid &&
    known.params_sha256 === hash &&
    shown(known) === shown(defined({ schedule, event, hook }))
  );
}
