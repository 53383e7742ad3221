/**
 * A project's triggers. What one is never changes: one that differs is made again, and the old one deleted. What its
 * key may do is changed in place.
 */
import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import { defined } from "../../protocol/defined";
import { parseCid } from "../../protocol/cidText";
import type { Connection, Made } from "../operations";
import { RUNS_ONLY } from "../../protocol/updates";
import { WrongUse } from "../errors";
import type { Answer } from "../wire";
import type { Built } from "./build";
import { hasTerms, type Key } from "./keys";
import type { Project } from "./project";
import type { Created, Keep, Step } from "./step";

export type Known = Pick<
  Answer<"listTriggers">[number],
  "id" | "api_key_hash" | "name" | "state" | "action_ipfs_cid" | "params_sha256" | "schedule" | "event" | "hook"
>;
type Wanted = Project["config"]["triggers"][string];

/** Of the account: its triggers, their keys, and groups by name. */
interface Present {
  readonly triggers: readonly Known[];
  readonly keys: readonly Key[];
  readonly groups: ReadonlyMap<string, string>;
}

export function triggerSteps(
  call: Connection["call"],
  { config }: Project,
  built: readonly Built[],
  present: Present,
): Step[] {
  return Object.entries(config.triggers).flatMap(([name, wanted]): Step[] => {
    const own = built.find(({ action }) => action === wanted.action);
    const cid = own?.cid ?? parseCid(wanted.action);
    if (cid === undefined)
      throw new WrongUse(`The trigger ${name} runs ${wanted.action}, which is no action of the project and no CID.`);
    const named = present.triggers.filter((one) => one.name === name);
    // One that is unattached was never given its key: a deployment broke off.
    // Nor does one act whose key was revoked.
    const isAttached = (one: Known): boolean => present.keys.some((key) => key.api_key_hash === one.api_key_hash);
    const kept = named.find((one) => one.state !== "unattached" && isAttached(one) && isSame(one, wanted, cid));
    // Steps of their own: a hook's secret is written after the step that makes it. Also of a deployment that broke off.
    const removals = named
      .filter(({ id }) => id !== kept?.id)
      .map(({ id }): Step => ({
        mark: "-",
        text: `trigger ${name}: the earlier one`,
        run: async () => void (await call("deleteTrigger", { id })),
      }));
    if (kept !== undefined) return [...termSteps(call, kept, wanted, present), ...removals];
    const run = async (created: Created, keep: Keep): Promise<void> => {
      // Code with the request: nobody else may have it.
      const what = own === undefined ? { action_ipfs_cid: cid } : { code: own.code };
      const fields = { ...fieldsOf(name, wanted, created), ...what };
      const made: Made = ({ hook_secret }) => keep(`${name}-hook`, hook_secret);
      made((await call("createTrigger", fields, made)) as Answer<"createTrigger">);
    };
    return [{ mark: "+", text: `trigger ${name}`, run }, ...removals];
  });
}

/** What changes the key of a trigger that is kept. */
function termSteps(call: Connection["call"], { name, api_key_hash }: Known, wanted: Wanted, present: Present): Step[] {
  const key = present.keys.find((one) => one.api_key_hash === api_key_hash);
  if (key === undefined || hasTerms(key, groupsOf(wanted, present.groups), wanted)) return [];
  const { description } = key;
  const { balance = 0, expiration = 0 } = wanted;
  const run = async ({ groups }: Created): Promise<void> => {
    const terms = { execute_in_groups: groupsOf(wanted, groups), balance, expiration };
    await call("updateUsageApiKey", {
      usage_api_key: api_key_hash,
      name: key.name,
      description,
      ...RUNS_ONLY,
      ...terms,
    });
  };
  return [{ mark: "~", text: `trigger ${name}: what its key may do`, run }];
}

/** Their ids; a group that is still to be made has none. Left out means all. */
const groupsOf = ({ execute }: Wanted, groups: ReadonlyMap<string, string>): string[] =>
  execute === undefined ? ["0"] : execute.map((group) => groups.get(group) ?? "");

function fieldsOf(name: string, wanted: Wanted, created: Created): object {
  const { params, schedule, event, hook, balance, expiration } = wanted;
  return {
    ...{ name, params, execute_in_groups: groupsOf(wanted, created.groups) },
    ...defined({ schedule, event, hook, balance, expiration }),
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
