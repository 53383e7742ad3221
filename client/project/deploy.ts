/**
 * Plans and applies a project's configuration to an account. Items are matched by name; anything the configuration does
 * not name is left unchanged.
 */
import { actionHashOf, type Cid } from "../../protocol/ids";
import { parseCid } from "../../protocol/cidText";
import { RUNS_ONLY } from "../../protocol/updates";
import { everyItem } from "../api";
import { WrongUse } from "../errors";
import type { Connection, Made, OperationName, Page } from "../operations";
import type { Built } from "./build";
import { hasTerms, hookSecretName, type Key } from "./keys";
import type { Project } from "./project";
import type { Created, Keep, Step } from "./step";
import { triggerSteps, type Known } from "./triggers";

interface Named {
  readonly name: string;
  readonly description: string;
}
type Wallet = Named & { readonly wallet_address: string };
type Group = Named & { readonly id: string; readonly cid_hashes: readonly string[]; readonly pkps: readonly string[] };
type Action = Named & { readonly hashed_cid: string };

interface State {
  readonly wallets: readonly Wallet[];
  readonly groups: readonly Group[];
  /** Without those that triggers are. */
  readonly keys: readonly Key[];
  readonly triggerKeys: readonly Key[];
  readonly actions: readonly Action[];
  readonly triggers: readonly Known[];
}

export interface Plan {
  readonly steps: readonly Step[];
  readonly created: Created;
  /** What the account has already of the project, and had a secret that was shown once. */
  readonly holders: readonly Holder[];
}

export interface Holder {
  /** Under which its secret is stored. */
  readonly name: string;
  /** A usage key; else a trigger with a hook. */
  readonly isKey: boolean;
  /** For people. */
  readonly what: string;
  readonly id: string;
  /** The command that ends it, so that the next deployment makes another. */
  readonly end: string;
}

/** Reads the account and returns the missing steps in dependency order. */
export async function planDeployment(connection: Connection, project: Project, built: readonly Built[]): Promise<Plan> {
  const state = await readState(connection, project.config);
  const created: Created = {
    pkps: new Map(state.wallets.map((one) => [one.name, one.wallet_address])),
    groups: new Map(state.groups.map((one) => [one.name, one.id])),
  };
  const parts = { call: connection.call, project, built, state };
  const own = [...actionSteps(parts), ...pkpSteps(parts), ...groupSteps(parts), ...keySteps(parts)];
  const present = { triggers: state.triggers, keys: state.triggerKeys, groups: created.groups };
  const steps = [...own, ...triggerSteps(connection.call, project, built, present)];
  return { steps, created, holders: holdersOf(project.config, state) };
}

function holdersOf(config: Project["config"], { keys, triggers }: State): Holder[] {
  const ofKeys = keys
    .filter(({ name }) => Object.hasOwn(config.keys, name))
    .map(({ name, api_key_hash: id }) => ({ name, isKey: true, what: `The key ${name}`, id, end: `key revoke ${id}` }));
  const ofHooks = triggers.flatMap(({ name: trigger, id }) => {
    const name = hookSecretName(config.triggers, trigger);
    return name === undefined
      ? []
      : [{ name, isKey: false, what: `The trigger ${trigger}`, id, end: `triggers delete ${id}` }];
  });
  return [...ofKeys, ...ofHooks];
}

interface Parts {
  readonly call: Connection["call"];
  readonly project: Project;
  readonly built: readonly Built[];
  readonly state: State;
}

async function readState(connection: Connection, config: Project["config"]): Promise<State> {
  const list = async <One>(name: OperationName, query: object = {}): Promise<One[]> => {
    const items: One[] = [];
    for await (const item of everyItem((page) => connection.call(name, page) as Promise<Page<One>>, query))
      items.push(item);
    return items;
  };
  const groups = (await list<Named & { id: string }>("listGroups")).filter(({ name }) =>
    Object.hasOwn(config.groups, name),
  );
  const whole = await Promise.all(
    groups.map(async (group) => ({
      ...group,
      cid_hashes: (await list<Action>("listActions", { group_id: group.id })).map(({ hashed_cid }) => hashed_cid),
      pkps: (await list<Wallet>("listWalletsInGroup", { group_id: group.id })).map(
        ({ wallet_address }) => wallet_address,
      ),
    })),
  );
  // Each key of a trigger has the trigger's name, and is no key of the project.
  const triggers = [config.keys, config.triggers].some((part) => Object.keys(part).length > 0)
    ? await list<Known>("listTriggers")
    : [];
  const ofTriggers = new Set(triggers.map(({ api_key_hash }) => api_key_hash));
  const keys = await list<Key>("listApiKeys");
  return {
    groups: unique("groups", config.groups, whole),
    wallets: unique("PKPs", config.pkps, await list<Wallet>("listWallets")),
    keys: unique(
      "keys",
      config.keys,
      keys.filter(({ api_key_hash }) => !ofTriggers.has(api_key_hash)),
    ),
    triggerKeys: keys.filter(({ api_key_hash }) => ofTriggers.has(api_key_hash)),
    actions: await list<Action>("listActions"),
    triggers,
  };
}

/** Of two items with one name, which one the project means would be a guess. */
function unique<One extends Named>(what: string, wanted: object, items: One[]): One[] {
  const names = items.map(({ name }) => name);
  const twice = Object.keys(wanted).find((name) => names.indexOf(name) !== names.lastIndexOf(name));
  if (twice !== undefined) throw new WrongUse(`The account has two ${what} named ${twice}: rename one.`);
  return items;
}

function actionSteps({ call, project, built, state }: Parts): Step[] {
  return built.flatMap(({ action, cid }): Step[] => {
    const known = state.actions.find(({ hashed_cid }) => hashed_cid === actionHashOf(cid as Cid));
    const description = project.config.actions[action]?.description ?? "";
    if (known === undefined) {
      return [
        {
          mark: "+",
          text: `action ${action} ${cid}`,
          run: async () => void (await call("addAction", { action_ipfs_cid: cid, name: action, description })),
        },
      ];
    }
    if (known.name === action && known.description === description) return [];
    const rename = { hashed_cid: known.hashed_cid, name: action, description };
    return [
      {
        mark: "~",
        text: `action ${action}: name and description`,
        run: async () => void (await call("updateActionMetadata", rename)),
      },
    ];
  });
}

function pkpSteps({ call, project, state }: Parts): Step[] {
  return Object.entries(project.config.pkps).flatMap(([name, { description }]): Step[] => {
    const known = state.wallets.find((one) => one.name === name);
    if (known !== undefined && isAsStated(known, description)) return [];
    if (known !== undefined) {
      const described = { pkp_id: known.wallet_address, name, description };
      const run = async (): Promise<void> => void (await call("updateWallet", described));
      return [{ mark: "~", text: `pkp ${name}: description`, run }];
    }
    const run = async (created: Created): Promise<void> => {
      const { wallet_address } = (await call("createWallet", { name, description: description ?? "" })) as Wallet;
      created.pkps.set(name, wallet_address);
    };
    return [{ mark: "+", text: `pkp ${name}`, run }];
  });
}

/** Only what the project states is changed. */
const isAsStated = (known: { readonly description: string }, description: string | undefined): boolean =>
  description === undefined || known.description === description;

function groupSteps({ call, project, built, state }: Parts): Step[] {
  return Object.entries(project.config.groups).flatMap(([name, { description, actions, pkps }]): Step[] => {
    const known = state.groups.find((one) => one.name === name);
    const cids = actions.map(
      (one) => built.find(({ action }) => action === one)?.cid ?? parseCid(one) ?? noAction(name, one),
    );
    const create: Step = {
      mark: "+",
      text: `group ${name}`,
      run: async (created) =>
        void created.groups.set(
          name,
          ((await call("addGroup", { group_name: name, group_description: description ?? "" })) as { group_id: string })
            .group_id,
        ),
    };
    const describe: Step = {
      mark: "~",
      text: `group ${name}: description`,
      run: async (created) => void (await call("updateGroup", { group_id: group_id(created), name, description })),
    };
    const group_id = (created: Created): string => created.groups.get(name) ?? "";
    const wanted = new Set(cids.map((cid) => actionHashOf(cid as Cid) as string));
    const added = cids
      .filter((cid) => !(known?.cid_hashes ?? []).includes(actionHashOf(cid as Cid)))
      .map((cid): Step => {
        const label = built.find((one) => one.cid === cid)?.action ?? cid;
        return {
          mark: "+",
          text: `group ${name}: action ${label}`,
          run: async (created) =>
            void (await call("addActionToGroup", { group_id: group_id(created), action_ipfs_cid: cid })),
        };
      });
    const dropped = (known?.cid_hashes ?? [])
      .filter((hash) => !wanted.has(hash))
      .map((hashed_cid): Step => {
        return {
          mark: "-",
          text: `group ${name}: action ${hashed_cid}`,
          run: async (created) =>
            void (await call("removeActionFromGroup", { group_id: group_id(created), hashed_cid })),
        };
      });
    return [
      ...(known === undefined ? [create] : isAsStated(known, description) ? [] : [describe]),
      ...added,
      ...dropped,
      ...memberSteps({ call, state, name, pkps, known, group_id }),
    ];
  });
}

function memberSteps(parts: {
  call: Connection["call"];
  state: State;
  name: string;
  pkps: readonly string[];
  known: Group | undefined;
  group_id: (created: Created) => string;
}): Step[] {
  const { call, state, name, pkps, known, group_id } = parts;
  const addressOf = (pkp: string): string | undefined =>
    pkp.startsWith("0x") ? pkp : state.wallets.find((one) => one.name === pkp)?.wallet_address;
  const same = (a: string | undefined, b: string): boolean => a?.toLowerCase() === b.toLowerCase();
  const added = pkps
    .filter((pkp) => !(known?.pkps ?? []).some((address) => same(addressOf(pkp), address)))
    .map((pkp): Step => {
      const run = async (created: Created): Promise<void> =>
        void (await call("addPkpToGroup", {
          group_id: group_id(created),
          pkp_id: addressOf(pkp) ?? created.pkps.get(pkp),
        }));
      return { mark: "+", text: `group ${name}: pkp ${pkp}`, run };
    });
  const dropped = (known?.pkps ?? [])
    .filter((address) => !pkps.some((pkp) => same(addressOf(pkp), address)))
    .map((pkp_id): Step => {
      return {
        mark: "-",
        text: `group ${name}: pkp ${pkp_id}`,
        run: async (created) => void (await call("removePkpFromGroup", { group_id: group_id(created), pkp_id })),
      };
    });
  return [...added, ...dropped];
}

function keySteps({ call, project, state }: Parts): Step[] {
  return Object.entries(project.config.keys).flatMap(
    ([name, { description = "", execute, balance = 0, expiration = 0 }]): Step[] => {
      const known = state.keys.find((one) => one.name === name);
      const fields = (created: Created): object => ({
        name,
        description,
        ...RUNS_ONLY,
        execute_in_groups: execute.map((group) => created.groups.get(group) ?? ""),
        balance,
        expiration,
      });
      if (known === undefined) {
        const run = async (created: Created, keep: Keep): Promise<void> => {
          const made: Made = ({ usage_api_key }) => keep(name, usage_api_key);
          made((await call("addUsageApiKey", fields(created), made)) as Parameters<Made>[0]);
        };
        return [{ mark: "+", text: `key ${name}`, run }];
      }
      const ids = execute.map((group) => state.groups.find((one) => one.name === group)?.id ?? "new");
      if (known.description === description && hasTerms(known, ids, { balance, expiration })) return [];
      const run = async (created: Created): Promise<void> =>
        void (await call("updateUsageApiKey", { usage_api_key: known.api_key_hash, ...fields(created) }));
      return [{ mark: "~", text: `key ${name}: what it may do`, run }];
    },
  );
}

function noAction(group: string, action: string): never {
  throw new WrongUse(`The group ${group} lists ${action}, which is no action of the project and no CID.`);
}
