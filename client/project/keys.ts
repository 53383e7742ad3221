/** Usage keys as a deployment compares them, the project's own and those of triggers, and where secrets are stored. */
import { decodedKeyIdOf, keyIdOf } from "../../protocol/ids";
import { RUNS_ONLY } from "../../protocol/updates";
import { isKeyText } from "../keyText";
import type { Item } from "../wire";

export type Key = Pick<
  Item<"listApiKeys">,
  "name" | "description" | "api_key_hash" | "execute_in_groups" | "expiration" | "balance" | keyof typeof RUNS_ONLY
>;

/** Whether the key may do exactly what the project wants of it, in the groups of these ids, and nothing else. */
export function hasTerms(
  key: Key,
  groups: readonly string[],
  { balance = 0, expiration = 0 }: { readonly balance?: number | undefined; readonly expiration?: number | undefined },
): boolean {
  return (
    [...groups].sort().join() === [...key.execute_in_groups].sort().join() &&
    Number(key.balance) === balance &&
    Number(key.expiration) === expiration &&
    Object.entries(RUNS_ONLY).every(([name, none]) => String(key[name as keyof typeof RUNS_ONLY]) === String(none))
  );
}

type Hook = { readonly verification: string; readonly secret?: string | undefined };

/** Where the secret is stored that the service makes for the hook of this trigger; undefined where it makes none. */
export function hookSecretName(
  triggers: Readonly<Record<string, { readonly hook?: Hook | undefined }>>,
  name: string,
): string | undefined {
  const hook = Object.hasOwn(triggers, name) ? triggers[name]?.hook : undefined;
  return hook === undefined || hook.verification === "none" || hook.secret !== undefined ? undefined : `${name}-hook`;
}

/** Whether this is the secret of the key with this id. */
export const isKeysSecret = (secret: unknown, id: string): boolean =>
  typeof secret === "string" &&
  isKeyText(secret) &&
  [keyIdOf(secret), decodedKeyIdOf(secret)].some((one) => one === id);

/** Where a secret is stored after another took its name: of a key, with the id of the key. */
export const nameOfReplaced = (name: string, secret: unknown): string =>
  typeof secret === "string" && isKeyText(secret)
    ? `${name} ${keyIdOf(secret)}`
    : `${name} until ${new Date().toISOString()}`;
