/** `deploy` against an account in memory: keys and triggers of one name, what changes in place, and what breaks off. */
import { expect } from "chai";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { testCli, type TestCli } from "../../support/cli";
import { actionHashOf, keyIdOf, type ApiKey, type Cid } from "../../../protocol/ids";
import { cidOfCode } from "../../../protocol/cid";
import { RUNS_ONLY } from "../../../protocol/updates";
import { ClientError } from "../../../client";
import { planDeployment } from "../../../client/project/deploy";

type Body = Record<string, unknown>;

/** The part of the service that `deploy` uses. */
class Account {
  readonly lists = {
    ...{ groups: [] as Body[], wallets: [] as Body[], actions: [] as Body[] },
    ...{ keys: [] as Body[], triggers: [] as Body[] },
  };
  readonly members: Body[] = [];
  /** Of the usage keys. */
  readonly secrets: string[] = [];
  /** Requests that are refused from now on. */
  refused = "";
  readonly seed = randomBytes(4).toString("hex");
  #count = 0;

  async answer(path: string, body: Body): Promise<Body | Body[]> {
    const { groups, wallets, actions, keys, triggers } = this.lists;
    const api_key_hash = `0x${createHash("sha256")
      .update(String((this.#count += 1)))
      .digest("hex")}`;
    const id = String(this.#count).padStart(32, "0");
    const added: Readonly<Record<string, () => Body | Body[] | Promise<Body>>> = {
      list_groups: () => groups,
      list_wallets: () => wallets,
      list_wallets_in_group: () => [],
      list_api_keys: () => keys,
      triggers: () => triggers,
      add_group: () => {
        const { group_name: name, group_description: description } = body;
        groups.push({ id: String(groups.length + 1), name, description });
        return { group_id: String(groups.length) };
      },
      update_group: () => Object.assign(groups[Number(body["group_id"]) - 1] ?? {}, body),
      create_wallet: () => {
        wallets.push({ ...body, wallet_address: `0x${String(wallets.length + 1).padStart(40, "0")}` });
        return wallets.at(-1) ?? {};
      },
      update_wallet: () => {
        const wallet = wallets.find((one) => one["wallet_address"] === body["pkp_id"]);
        return Object.assign(wallet ?? {}, { name: body["name"], description: body["description"] });
      },
      add_action: () => {
        const hashed_cid = actionHashOf(body["action_ipfs_cid"] as Cid);
        actions.push({ hashed_cid, name: body["name"], description: body["description"] });
        return {};
      },
      update_action_metadata: () => {
        const action = actions.find((one) => one["hashed_cid"] === body["hashed_cid"]);
        return Object.assign(action ?? {}, body);
      },
      add_action_to_group: () => {
        this.members.push({ hashed_cid: actionHashOf(body["action_ipfs_cid"] as Cid), name: "", description: "" });
        return {};
      },
      add_usage_api_key: () => {
        const usage_api_key = randomBytes(32).toString("base64");
        this.secrets.push(usage_api_key);
        const numbers = { balance: String(body["balance"]), expiration: String(body["expiration"]) };
        keys.push({ ...body, ...numbers, api_key_hash: keyIdOf(usage_api_key as ApiKey) });
        return { usage_api_key };
      },
      update_usage_api_key: () => {
        const key = keys.find((one) => one["api_key_hash"] === body["usage_api_key"]);
        return Object.assign(key ?? {}, { ...body, balance: String(body["balance"]) });
      },
      make_trigger: async () => {
        const { name, code, params, hook, schedule, balance = 0, expiration = 0, execute_in_groups = ["0"] } = body;
        const params_sha256 = createHash("sha256").update(JSON.stringify(params)).digest("hex");
        const action_ipfs_cid = await cidOfCode(String(code));
        triggers.push({ id, api_key_hash, name, action_ipfs_cid, params_sha256, hook, schedule });
        const terms = { balance: String(balance), expiration: String(expiration), execute_in_groups };
        keys.push({ name, description: "trigger", api_key_hash, ...RUNS_ONLY, ...terms });
        return hook === undefined ? {} : { hook_secret: `secret of the hook ${id} ${this.seed}` };
      },
    };
    return (await added[path]?.()) ?? {};
  }
}

describe("deploy", function () {
  this.timeout(30_000);
  let cli: TestCli;
  let account: Account;
  let server: Server;

  beforeEach(async () => {
    account = new Account();
    server = createServer((request, response) => {
      const { pathname, searchParams } = new URL(request.url ?? "", "http://service");
      let text = "";
      request.on("data", (chunk: Buffer) => (text += chunk.toString()));
      request.on("end", () => {
        const name = pathname.replace("/core/v1/", "");
        const inGroup =
          name === "list_actions" && (searchParams.has("group_id") ? account.members : account.lists.actions);
        const path = name === "triggers" && request.method === "POST" ? "make_trigger" : name;
        if (path === account.refused)
          return response.writeHead(402).end(JSON.stringify({ code: "insufficient_credit", detail: "No credit." }));
        const made = inGroup || account.answer(path, text === "" ? {} : (JSON.parse(text) as Body));
        void Promise.resolve(made).then((answer) =>
          response
            .writeHead(200, { "x-total-count": String((answer as Body[]).length ?? 0) })
            .end(JSON.stringify(answer)),
        );
      });
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    cli = testCli({
      KEYWRIGHT_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      KEYWRIGHT_API_KEY: `${"A".repeat(43)}=`,
    });
    writeFileSync(join(cli.cwd, "package.json"), "{}");
    writeFileSync(join(cli.cwd, "report.ts"), "export default () => 1;\n");
    symlinkSync(join(__dirname, "..", "..", "..", "node_modules"), join(cli.cwd, "node_modules"));
  });
  afterEach(() => {
    cli.remove();
    server.close();
  });

  const SCHEDULE = { cron: "0 9 * * *", time_zone: "UTC", missed: "skip" };
  const configure = (keys: object, trigger: object, triggerName = "report"): void =>
    writeFileSync(
      join(cli.cwd, "keywright.config.ts"),
      `export default ${JSON.stringify({
        actions: { report: { file: "report.ts" } },
        groups: { reports: { actions: ["report"] } },
        keys,
        triggers: { [triggerName]: { action: "report", ...trigger } },
      })};\n`,
    );
  const deploy = async (): Promise<string[]> =>
    (await cli.ok("--json deploy --yes")).json<{ steps: string[] }>().steps.map((step) => step.replace(/ Qm.*/, ""));

  it("tells a key from the trigger of its name, and changes what either may do in place", async () => {
    const key = { execute: ["reports"], balance: 10 };
    configure({ report: key }, { schedule: SCHEDULE, balance: 20 });
    expect(await deploy()).to.include.members(["+ key report", "+ trigger report"]);
    expect(await deploy()).to.deep.equal([]);
    for (const [trigger, changed] of [
      [{ balance: 30 }, { balance: "30", execute_in_groups: ["0"] }],
      [
        { balance: 30, execute: ["reports"] },
        { balance: "30", execute_in_groups: ["1"] },
      ],
      [{ balance: 30, execute: ["reports"], expiration: 4_000_000_000 }, { expiration: 4_000_000_000 }],
      [{}, { balance: "0", expiration: 0, execute_in_groups: ["0"] }],
    ] as const) {
      configure({ report: key }, { schedule: SCHEDULE, ...trigger });
      expect(await deploy()).to.deep.equal(["~ trigger report: what its key may do"]);
      expect(await deploy()).to.deep.equal([]);
      const [ofKey, ofTrigger] = account.lists.keys;
      expect(ofKey).to.deep.include({ name: "report", balance: "10", execute_in_groups: ["1"] });
      expect(ofTrigger).to.deep.include({ name: "report", description: "trigger", can_create_pkps: false, ...changed });
    }
    expect(account.lists.triggers).to.have.length(1);
    configure({ report: key }, { schedule: SCHEDULE, execute: [] });
    const { code, err } = await cli.run("deploy --yes");
    expect(code).to.equal(2);
    expect(err).to.include("triggers.report.execute: names a group; leave it out for all");
  });

  it("changes descriptions in place, of groups and PKPs as of actions", async () => {
    const described = (text: string | undefined): void =>
      writeFileSync(
        join(cli.cwd, "keywright.config.ts"),
        `export default ${JSON.stringify({
          actions: { report: { file: "report.ts", description: text } },
          pkps: { treasury: { description: text } },
          groups: { reports: { description: text, actions: ["report"] } },
        })};\n`,
      );
    described("before");
    expect(await deploy()).to.include.members(["+ pkp treasury", "+ group reports"]);
    expect(await deploy()).to.deep.equal([]);
    described("after");
    expect(await deploy()).to.have.members([
      "~ pkp treasury: description",
      "~ group reports: description",
      "~ action report: name and description",
    ]);
    expect(await deploy()).to.deep.equal([]);
    // What the file does not state stays.
    described(undefined);
    expect(await deploy()).to.deep.equal(["~ action report: name and description"]);
    const { wallets, groups } = account.lists;
    expect([...wallets, ...groups].map(({ description }) => description)).to.deep.equal(["after", "after"]);
  });

  it("stores a hook's secret, says where it is missing, and lets no key have its name", async () => {
    const hook = { verification: "hmac", respond: false };
    configure({}, { hook });
    await deploy();
    const file = join(cli.cwd, "keywright.secrets.json");
    expect(JSON.parse(readFileSync(file, "utf8"))).to.have.all.keys("report-hook");
    expect((await cli.ok("deploy")).err).to.equal("");
    rmSync(file);
    const id = String(account.lists.triggers[0]?.["id"]);
    expect((await cli.ok("deploy")).err)
      .to.include("The trigger report exists")
      .and.include(`triggers delete ${id}`);
    expect((await cli.ok("--json deploy")).json()).to.deep.include({ secrets_not_here: { "report-hook": id } });
    configure({ "report-hook": {} }, { hook });
    expect((await cli.run("deploy")).err).to.include("the key report-hook has the name");
    configure({ "report-hook": {} }, { hook: { ...hook, secret: "a secret of the sender's own" } });
    expect((await cli.run("deploy --dry-run")).code).to.equal(0);
  });

  it("keeps the secret of another account's key beside the new one, and says whose is under the name", async () => {
    configure({ bot: { execute: ["reports"] } }, { hook: { verification: "hmac", respond: false } });
    const file = join(cli.cwd, "keywright.secrets.json");
    const kept = (): Record<string, string> => JSON.parse(readFileSync(file, "utf8")) as Record<string, string>;
    await deploy();
    const first = account;
    const { bot, "report-hook": hook } = kept();
    // Another profile's.
    account = new Account();
    const { err } = await cli.ok("deploy --yes");
    const [id, otherId] = [first, account].map(({ secrets }) => keyIdOf(secrets[0] as ApiKey));
    expect(err).to.include(`had another secret as bot, which is now "bot ${id}"`);
    expect(kept()).to.include({ bot: account.secrets[0], [`bot ${id}`]: bot });
    expect(Object.values(kept())).to.include(hook).and.to.have.length(4);
    expect((await cli.ok("deploy")).err).to.equal("");

    account = first;
    expect((await cli.ok("deploy")).err)
      .to.include(`The secret of the key bot ${id} is in keywright.secrets.json as "bot ${id}"`)
      .and.not.include("If it is lost");
    expect((await cli.ok("--json deploy")).json()).to.deep.include({ secrets_not_here: { bot: id } });
    writeFileSync(file, JSON.stringify({ bot: kept()["bot"], "report-hook": hook }));
    expect((await cli.ok("deploy")).err)
      .to.include("The key bot exists and its secret is not")
      .and.include(id);
    expect(otherId).to.not.equal(id);
  });

  it("replaces no secret by itself, when a step tells of it twice", async () => {
    configure({ bot: {} }, { schedule: SCHEDULE });
    expect((await cli.ok("deploy --yes")).err).to.not.include("another");
  });

  it("shows a secret that its file cannot take, and ends there", async () => {
    configure({ bot: {} }, { schedule: SCHEDULE });
    // Where the disk is full, or the folder is gone.
    mkdirSync(join(cli.cwd, `keywright.secrets.json.${process.pid}`));
    const { code, out, err } = await cli.run("deploy --yes");
    expect([code, account.lists.triggers]).to.deep.equal([1, []]);
    expect(account.secrets).to.have.length(1);
    expect(out).to.include(account.secrets[0]);
    expect(err).to.include("Shown after all").and.not.include("New secrets are in");
  });

  it("takes from a key what it may do beyond the file", async () => {
    configure({ bot: { execute: ["reports"] } }, { schedule: SCHEDULE });
    await deploy();
    for (const more of [
      { can_create_groups: true },
      { can_delete_groups: true },
      { can_create_pkps: true },
      { manage_ipfs_ids_in_groups: ["1"] },
      { add_pkp_to_groups: ["0"] },
      { remove_pkp_from_groups: ["1"] },
    ]) {
      for (const key of account.lists.keys) Object.assign(key, more);
      expect(await deploy(), JSON.stringify(more)).to.deep.equal([
        "~ key bot: what it may do",
        "~ trigger report: what its key may do",
      ]);
      for (const key of account.lists.keys) expect(key).to.deep.include(RUNS_ONLY);
      expect(await deploy()).to.deep.equal([]);
    }
  });

  it("keeps a secret as soon as it is made, also where what follows fails", async () => {
    const kept: unknown[] = [];
    const call = async (name: string, _input: unknown, made?: (answer: object) => void): Promise<unknown> => {
      if (/^list/.test(name)) return { items: [], total: 0 };
      if (!["addUsageApiKey", "createTrigger"].includes(name)) return {};
      made?.(name === "createTrigger" ? { hook_secret: "hook" } : { usage_api_key: "key" });
      throw new ClientError("client_timed_out", "The transaction is not on chain yet.");
    };
    const trigger = { action: "report", params: {}, hook: { verification: "hmac" } };
    const config = { actions: {}, pkps: {}, groups: {}, keys: { bot: { execute: [] } }, triggers: { report: trigger } };
    const built = [{ action: "report", file: "", code: "1", cid: await cidOfCode("1"), bytes: 1 }];
    const connection = { call, close: () => undefined } as never;
    const { steps, created } = await planDeployment(connection, { config } as never, built);
    for (const { run } of steps) await run(created, (...secret) => kept.push(secret)).catch(() => undefined);
    expect(kept).to.deep.equal([
      ["bot", "key"],
      ["report-hook", "hook"],
    ]);
  });

  it("names the step at which it breaks off, and goes on from there", async () => {
    configure({ bot: { execute: ["reports"] } }, { schedule: SCHEDULE });
    account.refused = "add_usage_api_key";
    expect((await cli.run("deploy --yes")).err)
      .to.include("error insufficient_credit")
      .and.to.include("step: + key bot")
      .and.to.include("steps_done: 3 of 5");
    account.refused = "";
    expect((await cli.run("--idempotency-key x deploy --yes")).err).to.include("makes several");
    expect(await deploy()).to.deep.equal(["+ key bot", "+ trigger report"]);
  });
});
