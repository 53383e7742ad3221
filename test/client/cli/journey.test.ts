/**
 * The command line against a whole stack: from a new account to a signature, a login that never prints its key, an
 * owner with a wallet, and a file for a Safe.
 */
import { expect } from "chai";
import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Wallet, encryptKeystoreJsonSync, verifyMessage, type JsonRpcProvider } from "ethers";
import { connect, fundedWallet } from "../../support/chain";
import { testCli, type TestCli } from "../../support/cli";
import { SIGN } from "../../support/journey";
import { deploySafe } from "../../support/safe";
import { BREAK, RpcProxy } from "../../support/rpcProxy";
import { useStack } from "../../support/stack";
import { createClient, type SafeBatchFile } from "../../../client";

describe("the command line", function () {
  this.timeout(60_000);
  const stack = useStack();
  let cli: TestCli;
  let provider: JsonRpcProvider;

  before(() => {
    cli = testCli({ KEYWRIGHT_URL: stack().baseUrl });
    provider = connect(stack().rpcUrl);
    writeFileSync(join(cli.cwd, "sign.js"), SIGN);
    writeFileSync(join(cli.cwd, "fail.js"), "async function main() { throw new Error('no\\u001b[2J'); }");
  });
  after(() => {
    provider.destroy();
    cli.remove();
  });

  it("goes from a new account to a signature, and revokes", async () => {
    const account = (await cli.ok("--json account create Acme")).json<{ api_key: string }>();
    cli.secrets.push(account.api_key);
    const login = await cli.ok("login --profile given");
    expect(login.out + login.err).to.not.include(account.api_key);
    expect((await cli.run("account show")).err)
      .to.include("keywright login")
      .and.to.not.include("X-Api-Key");
    const created = await cli.ok("account create Acme --login");
    const stored = JSON.parse(readFileSync(join(cli.cwd, "credentials.json"), "utf8")) as {
      profiles: { default: { api_key: string } };
    };
    expect(created.out + created.err).to.not.include(stored.profiles.default.api_key);
    expect((await cli.run("account create Second --login")).code).to.equal(2);
    const other = testCli({ KEYWRIGHT_URL: stack().baseUrl });
    await other.ok("--profile second account create Second --login");
    expect((await other.ok("--profile second --json account show")).json<{ name: string }>().name).to.equal("Second");
    other.remove();
    const pkp = (await cli.ok("--json pkp create --name treasury")).json<{ wallet_address: string }>().wallet_address;
    const group = (await cli.ok("--json group create payouts")).json<{ group_id: string }>().group_id;
    const cid = (await cli.ok("cid sign.js")).out.trim();
    await cli.ok(`group add-action ${group} ${cid}`);
    await cli.ok(`group add-pkp ${group} ${pkp}`);
    const key = (await cli.ok(`--json key create bot --execute-in-groups ${group}`)).json<{
      usage_api_key: string;
      api_key_hash: string;
    }>();
    const bot = testCli({ KEYWRIGHT_URL: stack().baseUrl, KEYWRIGHT_API_KEY: key.usage_api_key });
    const params = JSON.stringify({ pkpId: pkp, message: "hello" });
    const run = await bot.ok("run", join(cli.cwd, "sign.js"), "--params", params, "--pkp", pkp);
    expect(verifyMessage("hello", run.json<{ signature: string }>().signature)).to.equal(pkp);
    expect(run.err).to.match(/ms, 1 cent/);
    const groups = await cli.ok("group list");
    expect(groups.out)
      .to.match(/^ID +NAME/)
      .and.to.include("payouts");
    expect((await cli.ok("billing history --all --json")).json<{ items: unknown[] }>().items.length).to.be.greaterThan(
      3,
    );
    const kept = await cli.ok("key create kept --out kept.json");
    const { usage_api_key } = JSON.parse(readFileSync(join(cli.cwd, "kept.json"), "utf8")) as { usage_api_key: string };
    expect(usage_api_key).to.have.length(44);
    expect(kept.out + kept.err).to.not.include(usage_api_key);
    expect(statSync(join(cli.cwd, "kept.json")).mode & 0o777).to.equal(0o600);
    expect((await cli.run("key create other --out kept.json")).code).to.equal(2);
    expect((await cli.run("--json key create x --execute-in-groups 99 --out none.json")).code).to.equal(1);
    expect(existsSync(join(cli.cwd, "none.json"))).to.equal(false);
    expect((await cli.ok("logs --limit 3")).out).to.match(/^CURSOR +/m);
    await cli.ok(`key revoke ${key.api_key_hash}`);
    const refused = await bot.run("--json run", join(cli.cwd, "sign.js"));
    expect([
      refused.code,
      (JSON.parse(refused.err) as { error: { code: string; status: number } }).error.code,
    ]).to.deep.equal([1, "unknown_key"]);
    bot.remove();
  });

  it("exits with 4 when the action fails, with its logs and a readable error", async () => {
    const group = (await cli.ok("--json group create failing")).json<{ group_id: string }>().group_id;
    await cli.ok(`group add-action ${group} ${(await cli.ok("cid fail.js")).out.trim()}`);
    const failed = await cli.run("run fail.js");
    expect([failed.code, failed.out]).to.deep.equal([4, ""]);
    expect(failed.err).to.include("error threw: no [2J");
  });

  it("reports a refusal by its code, as text and as JSON", async () => {
    const people = await cli.run("group delete 99");
    expect([people.code, people.err.split("\n")[0]]).to.deep.equal([1, people.err.split("\n")[0]]);
    expect(people.err).to.match(/^error unknown_group: .*\n(.*\n)* {2}request id: \S+\n$/);
    const programs = JSON.parse((await cli.run("group delete 99 --json")).err) as { error: Record<string, unknown> };
    expect(programs.error).to.include({ code: "unknown_group", status: 404 });
  });

  it("stores a login for its user alone, sends it to its own service only, deletes it on logout", async () => {
    const file = join(cli.cwd, "credentials.json");
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    chmodSync(file, 0o644);
    expect((await cli.run("group list")).err).to.include("chmod 600");
    chmodSync(file, 0o600);
    const elsewhere = await cli.run(`--url ${stack().baseUrl.replace("127.0.0.1", "localhost")} group list`);
    expect(elsewhere.err).to.include("missing_credential");
    cli.secrets.push(randomBytes(32).toString("base64"));
    expect((await cli.run("login --profile other")).err).to.include("unknown_key");
    await cli.ok("logout --profile given --yes");
    await cli.ok("logout --yes");
    expect(readFileSync(file, "utf8")).to.not.include("api_key");
    expect((await cli.run("group list")).err).to.include("missing_credential");
    expect((await cli.run("logout")).code).to.equal(2);
  });

  it("does the same by transactions for an owner with a wallet file", async () => {
    const wallet = await fundedWallet(provider);
    const password = "correct horse";
    writeFileSync(
      join(cli.cwd, "wallet.json"),
      encryptKeystoreJsonSync({ address: wallet.address, privateKey: wallet.privateKey }, password, {
        scrypt: { N: 1024, r: 8, p: 1 },
      }),
    );
    cli.env["KEYWRIGHT_WALLET_PASSWORD"] = "wrong";
    expect((await cli.run(`login --wallet wallet.json --rpc ${stack().rpcUrl}`)).code).to.equal(2);
    cli.env["KEYWRIGHT_WALLET_PASSWORD"] = password;
    await cli.ok(`login --wallet wallet.json --rpc ${stack().rpcUrl}`);
    expect(readFileSync(join(cli.cwd, "credentials.json"), "utf8")).to.not.include(password);
    await cli.ok("account create Owner");
    const pkp = (await cli.ok("--json pkp create --name mine")).json<{ wallet_address: string }>();
    const group = (await cli.ok("--json group create mine")).json<{ group_id: string }>();
    await cli.ok(`group add-pkp ${group.group_id} ${pkp.wallet_address}`);
    const key = (await cli.ok(`--json key create bot --execute-in-groups ${group.group_id}`)).json<{
      usage_api_key: string;
    }>();
    expect(key.usage_api_key).to.have.length(44);
    expect((await cli.ok("--json account show")).json()).to.include({ owner: wallet.address, managed: false });
    await cli.ok(`pkp rename ${pkp.wallet_address} renamed`);
    expect((await cli.ok("pkp list")).out)
      .to.include(pkp.wallet_address)
      .and.to.include("renamed");
    expect((await cli.run("run sign.js")).err).to.include("with a key, not with a wallet");
    expect((await cli.run("group delete 7")).err).to.include("unknown_group");
    writeFileSync(join(cli.cwd, "hook.js"), "async function main() { return 1; }");
    const trigger = (await cli.ok(`--json triggers create called --code @hook.js --hook {}`)).json<{ id: string }>();
    await cli.ok(`triggers delete ${trigger.id}`);
    expect((await cli.ok("--json triggers list")).json()).to.deep.include({ total: 0 });
  });

  it("keeps the secret of a wallet's key that becomes live after its transaction's answer was lost", async () => {
    const profiles = (): Record<string, Record<string, string>> =>
      (JSON.parse(readFileSync(join(cli.cwd, "credentials.json"), "utf8")) as never)["profiles"];
    const { default: login } = profiles();
    const proxy = await RpcProxy.start(stack().rpcUrl);
    const lost = testCli({
      ...cli.env,
      KEYWRIGHT_CONFIG: join(cli.cwd, "none.json"),
      KEYWRIGHT_WALLET_FILE: login?.["wallet_file"],
      KEYWRIGHT_RPC_URL: proxy.url,
    });
    try {
      for (const out of ["--out late.json", ""]) {
        proxy.injectTimes(1, "eth_sendRawTransaction", async (_call, forward): Promise<typeof BREAK> => {
          await forward();
          return BREAK;
        });
        const { code, out: shown, err } = await lost.run(`--json key create late --execute-in-groups 0 ${out}`);
        const { error } = JSON.parse(err) as { error: { code: string; message: string; facts: object } };
        expect([code, error.code], err).to.deep.equal([1, "transaction_failed"]);
        expect(error.message).to.include("may have been sent");
        const made = JSON.parse(out === "" ? shown : readFileSync(join(lost.cwd, "late.json"), "utf8")) as {
          usage_api_key: string;
        };
        if (out !== "") expect([shown, error.facts]).to.deep.equal(["", { ...error.facts, secret_in: "late.json" }]);
        expect(err).to.not.include(made.usage_api_key);
        const bot = createClient({ baseUrl: stack().baseUrl, apiKey: made.usage_api_key });
        expect(await bot.accountExists()).to.equal(true);
      }
    } finally {
      lost.remove();
      await proxy.stop();
    }
  });

  it("has a wallet's login name its contract and chain, and refuses a service that names others", async () => {
    const file = join(cli.cwd, "credentials.json");
    const { profiles } = JSON.parse(readFileSync(file, "utf8")) as { profiles: { default: Record<string, string> } };
    expect(profiles.default["contract_address"]).to.match(/^0x[0-9a-fA-F]{40}$/);
    expect(profiles.default["chain_id"]).to.equal("31337");
    const other = { ...profiles.default, contract_address: Wallet.createRandom().address };
    writeFileSync(file, JSON.stringify({ profiles: { ...profiles, other } }));
    expect((await cli.run("--profile other account show")).err).to.include("wrong_chain");
    await cli.ok("--profile other logout");
    const line = `--contract ${other.contract_address}`;
    expect((await cli.run(`--profile new login --wallet wallet.json --rpc ${stack().rpcUrl} ${line}`)).err).to.include(
      "wrong_chain",
    );
  });

  it("appends calls to a Transaction Builder file, and refuses another Safe's file", async () => {
    const seats = [Wallet.createRandom(), Wallet.createRandom()].map((seat) => seat.connect(provider));
    const safe = await deploySafe(await fundedWallet(provider), seats, 2);
    const as = `safe --safe ${safe.address} --rpc ${stack().rpcUrl} --out batch.json`;
    await cli.ok(`${as} account create DAO`);
    const minted = (await cli.ok(`--json ${as} pkp create --name treasury`)).json<{
      wallet_address: string;
      calls: number;
    }>();
    expect(minted.calls).to.equal(2);
    await cli.ok(`${as} group create payouts --pkp-ids-permitted ${minted.wallet_address}`);
    const batch = JSON.parse(readFileSync(join(cli.cwd, "batch.json"), "utf8")) as SafeBatchFile;
    expect(batch.transactions).to.have.length(3);
    await safe.execute(batch.transactions);
    await cli.ok(`safe --safe ${safe.address} --rpc ${stack().rpcUrl} --out rename.json pkp rename 1 cold`);
    const { transactions } = JSON.parse(readFileSync(join(cli.cwd, "rename.json"), "utf8")) as SafeBatchFile;
    expect(transactions.map(({ contractMethod }) => contractMethod.name)).to.deep.equal(["updatePkpMetadata"]);
    const seen = await cli.run(
      `safe --safe ${seats[0]?.address ?? ""} --rpc ${stack().rpcUrl} --out batch.json group delete 1`,
    );
    expect([seen.code, seen.err]).to.deep.equal([2, seen.err]);
    expect(seen.err).to.include("not a batch of this Safe");
  });

  it("makes a Safe's file anew of the calls in it, and refuses calls of others", async () => {
    const as = `safe --safe ${Wallet.createRandom().address} --rpc ${stack().rpcUrl} --out shared.json`;
    const file = join(cli.cwd, "shared.json");
    const read = (): SafeBatchFile => JSON.parse(readFileSync(file, "utf8")) as SafeBatchFile;
    const key = await cli.ok(`--json ${as} key create bot --secret-out bot.json --execute-in-groups 0`);
    const { usage_api_key } = JSON.parse(readFileSync(join(cli.cwd, "bot.json"), "utf8")) as { usage_api_key: string };
    expect(usage_api_key).to.have.length(44);
    expect(key.out + key.err).to.not.include(usage_api_key);
    expect(key.json()).to.include({ secret_in: "bot.json" });
    expect(statSync(join(cli.cwd, "bot.json")).mode & 0o777).to.equal(0o600);
    const taken = await cli.run(`${as} key create bot --secret-out bot.json --execute-in-groups 0`);
    expect([taken.code, read().transactions.length]).to.deep.equal([2, 1]);
    const good = read();
    const [call] = good.transactions;
    if (call === undefined) throw new Error("no call");
    const write = (changed: object): void =>
      writeFileSync(file, JSON.stringify({ ...good, transactions: [{ ...call, ...changed }] }));
    write({ contractMethod: { ...call.contractMethod, name: "freeze" }, contractInputsValues: {} });
    await cli.ok(`${as} account freeze`);
    expect(read().transactions[0]).to.deep.equal(call);
    for (const changed of [{ to: Wallet.createRandom().address }, { value: "1" }, { data: "0x12345678" }]) {
      write(changed);
      const { code, err } = await cli.run(`${as} key create c --secret-out c.json --execute-in-groups 0`);
      expect([code, err], JSON.stringify(changed)).to.deep.equal([2, err]);
      expect(err).to.include("name another");
      expect(existsSync(join(cli.cwd, "c.json"))).to.equal(false);
    }
  });
});
