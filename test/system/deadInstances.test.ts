/**
 * Instances on one PostgreSQL: a dead one is detected within seconds, in whatever container it ran; a live one is never
 * considered dead.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect } from "chai";
import { openStore, type Store } from "../../relayer/store";
import { Instance } from "../../relayer/store/instance";
import { SessionLock } from "../../relayer/store/sessionLock";
import { eventually } from "../support/chainBed";
import { startPostgres, type TestPostgres } from "../../scripts/dev/postgres";
import { PostgresProxy } from "../support/statementFaults";

const ROOT = join(__dirname, "..", "..");
const DATABASE = "dead_instances";

describe("an instance on PostgreSQL", function () {
  this.timeout(60_000);
  let postgres: TestPostgres;
  let databaseUrl: string;
  let store: Store;
  const ended: (() => Promise<unknown>)[] = [];
  before(async () => {
    postgres = await startPostgres();
    databaseUrl = await postgres.database(DATABASE);
    store = await openStore({ databaseUrl });
  });
  afterEach(async () => {
    for (const end of ended.splice(0).reverse()) await end();
  });
  after(async () => {
    await store?.close();
    await postgres?.stop();
  });

  async function start(over: Store = store): Promise<Instance> {
    const instance = new Instance({ db: over.db, lockOf: over.lockOf, onError: () => undefined });
    await instance.start();
    ended.push(() => instance.stop());
    return instance;
  }
  const isLeased = async (id: string): Promise<boolean> =>
    (await store.db.selectFrom("instances").select("id").where("id", "=", id).execute()).length === 1;
  const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

  /** In a process of its own, as in a container: only the database is shared. */
  async function startElsewhere(): Promise<{ id: string; kill: () => Promise<void> }> {
    const script = `
      const { openStore } = require("./relayer/store");
      const { Instance } = require("./relayer/store/instance");
      openStore({ databaseUrl: process.env.URL }).then(async ({ db, lockOf }) => {
        const instance = new Instance({ db, lockOf, onError: console.error });
        await instance.start();
        console.log(instance.id);
        setInterval(() => 0, 1000);
      });`;
    const running = spawn(process.execPath, ["-r", "./scripts/typescript.cjs", "-e", script], {
      cwd: ROOT,
      env: { ...process.env, URL: databaseUrl },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = (await once(running.stdout, "data")) as [Buffer];
    return {
      id: line.toString().trim(),
      kill: async () => {
        running.kill("SIGKILL");
        await once(running, "close");
      },
    };
  }

  it("that was killed is known to be dead before the next one serves; live ones keep their lease", async () => {
    const living = await start();
    const killed = await startElsewhere();
    await pause(1_500);
    expect([await isLeased(killed.id), await isLeased(living.id)]).to.deep.equal([true, true]);
    await killed.kill();
    const begun = Date.now();
    await start();
    expect(Date.now() - begun, "ms that the next one waits at its start").to.be.below(5_000);
    expect([await isLeased(killed.id), await isLeased(living.id)]).to.deep.equal([false, true]);
  });

  it("that was killed is known to be dead to those beside it within seconds", async () => {
    await start();
    const killed = await startElsewhere();
    await killed.kill();
    await eventually("its lease is ended", async () => !(await isLeased(killed.id)), 6_000);
  });

  it("whose connections were cut stays alive, however often", async () => {
    const proxy = await PostgresProxy.start(databaseUrl);
    const cutOff = await openStore({ databaseUrl: proxy.url });
    ended.push(async () => {
      await cutOff.close();
      await proxy.stop();
    });
    const living = await start(cutOff);
    await start();
    for (let blip = 0; blip < 8; blip++) {
      await pause(400);
      proxy.cut();
    }
    proxy.down();
    await pause(1_000);
    proxy.up();
    await pause(4_000);
    expect(await isLeased(living.id)).to.equal(true);
  });

  it("of an older version, which holds no lock, is judged by its lease", async () => {
    await store.db.insertInto("instances").values({ id: "older" }).execute();
    await start();
    await pause(3_500);
    expect(await isLeased("older")).to.equal(true);
  });

  it("reports that it holds its lock only while its own session does", async () => {
    const lock = new SessionLock(databaseUrl, "pooled", () => undefined);
    ended.push(() => lock.close());
    expect(await lock.hold()).to.equal(true);
    const other = new SessionLock(databaseUrl, "pooled", () => undefined);
    ended.push(() => other.close());
    expect(await other.hold(), "another session has it").to.equal(false);
  });
});
