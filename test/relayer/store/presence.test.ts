/** Leases of instances that are known to be dead: nobody waits for them. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { expect } from "chai";
import type { Db } from "../../../relayer/store/database";
import { Instance } from "../../../relayer/store/instance";
import { isDead, placeHere } from "../../../relayer/store/presence";
import { sharedStore } from "../../support/store";

const ROOT = join(__dirname, "..", "..", "..");

describe("an instance that is dead", () => {
  let db: Db;
  const started: Instance[] = [];
  before(async () => {
    ({ db } = await sharedStore());
  });
  afterEach(async () => {
    for (const instance of started.splice(0)) await instance.stop();
  });
  const start = async (more: Partial<ConstructorParameters<typeof Instance>[0]> = {}): Promise<Instance> => {
    const instance = new Instance({ db, onError: () => undefined, ...more });
    await instance.start();
    started.push(instance);
    return instance;
  };
  const isLeased = async (id: string): Promise<boolean> => (await db.selectFrom("instances").select("id").where("id", "=", id).execute()).length === 1;

  it("was killed on this machine: its lease ends with the next start, not 15 seconds later; those who live keep theirs", async function () {
    this.timeout(30_000);
    const id = randomUUID();
    const script = `require("./relayer/store/presence").beHere("${id}").then(() => { console.log("here"); setInterval(() => 0, 1000); })`;
    const child = spawn(process.execPath, ["-r", "ts-node/register/transpile-only", "-e", script], { cwd: ROOT, stdio: ["ignore", "pipe", "inherit"] });
    await once(child.stdout, "data");
    await db
      .insertInto("instances")
      .values({ id, place: placeHere() ?? null })
      .execute();
    const living = await start();
    expect([await isDead(id), await isLeased(id)]).to.deep.equal([false, true]);
    child.kill("SIGKILL");
    await once(child, "close");
    await start();
    expect([await isDead(id), await isLeased(id), await isLeased(living.id)]).to.deep.equal([true, false, true]);
  });

  it("was of another machine or container: only its lease tells", async () => {
    const id = randomUUID();
    await db.insertInto("instances").values({ id, place: "another boot net:[1]" }).execute();
    await start();
    expect(await isLeased(id)).to.equal(true);
    await db.deleteFrom("instances").where("id", "=", id).execute();
  });

  it("shared an embedded store: whoever has the store now knows that it is alone", async () => {
    const id = randomUUID();
    await db.insertInto("instances").values({ id }).execute();
    await start({ storeIsOurs: true });
    expect(await isLeased(id)).to.equal(false);
  });
});
