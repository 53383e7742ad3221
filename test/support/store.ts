/**
 * One store for all tests of a mocha process (PGlite takes a second to start and 350 MB to keep): tests stay apart by using fresh accounts.
 * KEYWRIGHT_TEST_DATABASE_URL makes the same tests run on a real PostgreSQL (`npm run test:system`).
 */
import { after } from "mocha";
import { openStore, type Store } from "../../relayer/store/index";

let shared: Promise<Store> | undefined;

export const testDatabaseUrl = process.env.KEYWRIGHT_TEST_DATABASE_URL;

export function sharedStore(): Promise<Store> {
  shared ??= openStore({ databaseUrl: testDatabaseUrl });
  return shared;
}

after(async () => {
  await (await shared)?.close();
});
