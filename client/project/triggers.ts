/** A project's triggers. What one is never changes: one that differs is made again, and the old one deleted. */
import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import { defined } from "../../protocol/defined";
import { parseCid } from "../../protocol/cidText";
import type { Connection } from "../operations";
import { WrongUse } from "../errors";
import type { Answer } from "../wire";
import type { Built } from "./build";
import type { Project } from "./project";
import type { Created, Step } from "./step";

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
    const own = built.find(({ action }) => action === wanted.action);
    const cid = own?.cid ?? parseCid(wanted.action);
    if (cid === undefined)
      throw new WrongUse(`The trigger ${name} runs ${wanted.action}, which is no action of the project and no CID.`);
    const named = present.filter((one) => one.name === name);
    const kept = named.find((one) => isSame(one, wanted, cid));
    // Steps of their own: a hook's secret is written after the step that makes it. Also of a deployment that broke off.
    const removals = named
      .filter(({ id }) => id !== kept?.id)
      .map(({ id }): Step => ({
        mark: "-",
        text: `trigger ${name}: the earlier one`,
        run: async () => void (await call("deleteTrigger", { id })),
      }));
    if (kept !== undefined) return removals;
    const run = async (created: Created): Promise<void> => {
      // Code with the request: nobody else may have it.
      const what = own === undefined ? { action_ipfs_cid: cid } : { code: own.code };
      const fields = { ...fieldsOf(name, wanted, created), ...what };
      const { hook_secret } = (await call("createTrigger", fields)) as Answer<"createTrigger">;
      if (hook_secret !== undefined) created.secrets[`${name}-hook`] = hook_secret;
    };
    return [{ mark: "+", text: `trigger ${name}`, run }, ...removals];
  });
}

function fieldsOf(name: string, wanted: Wanted, created: Created): object {
  const { params, schedule, event, hook, execute, balance, expiration } = wanted;
  const groups = execute.map((group) => created.groups.get(group) ?? "");
  return {
    ...{ name, params },
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
