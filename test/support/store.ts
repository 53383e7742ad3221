/**
 * One store for all tests of a mocha process (PGlite takes a second to start and 350 MB to keep): tests are isolated by
 * fresh accounts. KEYWRIGHT_TEST_DATABASE_URL makes the same tests run on a real PostgreSQL (`npm run test:system`).
 */
import { after, before } from "mocha";
import type { Store } from "../../relayer/store/index";
import { openTestStore } from "./testStore";

let shared: Promise<Store> | undefined;

export const testDatabaseUrl = process.env.KEYWRIGHT_TEST_DATABASE_URL;

export function sharedStore(): Promise<Store> {
  shared ??= openTestStore({ databaseUrl: testDatabaseUrl });
  return shared;
}

// Opened before the first test, with a generous time-out, so that it does not count towards a test's own time.
before(async function () {
  this.timeout(120_000);
  await sharedStore();
});
after(async () => {
  await (await shared)?.close();
});
