/** A store for one test: in memory, of a database that was made before, unless a database is named. */
import { openStore, type Store, type StoreOptions } from "../../relayer/store/index";
import { newDatabase } from "../../scripts/dev/embeddedDatabase";

export async function openTestStore(options: StoreOptions = {}): Promise<Store> {
  return openStore({ initial: await newDatabase(), ...options });
}
