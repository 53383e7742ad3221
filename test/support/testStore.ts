/** A store for one test: in memory, of a database that was made before, unless a database is named. */
import { openStore, type Store, type StoreOptions } from "../../relayer/store/index";
import { newDatabase } from "../../scripts/dev/embeddedDatabase";

export async function openTestStore(options: StoreOptions = {}): Promise<Store> {
  const initial = options.databaseUrl === undefined ? await newDatabase() : undefined;
  return openStore({ initial, ...options });
}
