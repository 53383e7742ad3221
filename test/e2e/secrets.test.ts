/**
 * Canary secrets in every input that can carry a secret, then a search of every sink: both services' logs at their
 * lowest level, the metrics, the database and other files of the services, and the bodies of errors. Each secret is
 * also searched for in its other encodings.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { openTee } from "../../executor/tee";
import { startStack, type Stack } from "../../scripts/dev/stack";
import { makeAccount, makeGroup, makeUsageKey, refusal } from "../support/journey";

const canary = (place: string): string => `canary-${place}-${randomBytes(8).toString("hex")}`;
const RPC_SECRET = canary("rpc");

/** Answers with the key of a PKP, which the tripwire must catch; puts the canary into its log and its error. */
const KEY_THIEF = "async function main({ pkpId }) { return { key: await Actions.getPrivateKey({ pkpId }) }; }";
const TALKER = "async function main({ say }) { console.log(say); return say; }";
const THROWER = "async function main({ say }) { throw new Error(say); }";

interface Planted {
  readonly name: string;
  readonly value: string;
  /** Sinks that hold it by design. */
  readonly allowed?: readonly Sink[];
}
type Sink = "relayer log" | "executor log" | "metrics" | "files" | "error bodies";

/** A key is as dangerous in hex, in the other base64 and percent-encoded. */
function spellings(value: string): string[] {
  const bytes = /^[A-Za-z0-9+/]{43}=$/.test(value)
    ? Buffer.from(value, "base64")
    : /^0x[0-9a-f]{64}$/.test(value)
      ? Buffer.from(value.slice(2), "hex")
      : undefined;
  if (bytes === undefined) return [value, Buffer.from(value).toString("hex")];
  return [
    value,
    bytes.toString("hex"),
    bytes.toString("hex").toUpperCase(),
    bytes.toString("base64"),
    bytes.toString("base64url"),
    encodeURIComponent(bytes.toString("base64")),
  ];
}

describe("secrets", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "secrets-"));
  const logs = { relayer: "", executor: "" };
  const errorBodies: string[] = [];
  const planted: Planted[] = [];
  let stack: Stack;
  let chainPort = 0;
  const sockets = new Set<Socket>();
  /** Between the services and the chain, so that the chain can be disconnected at the end. */
  const wire = createServer((socket) => {
    const chain = connect(chainPort, "127.0.0.1");
    for (const end of [socket, chain]) {
      sockets.add(end);
      end.on("error", () => undefined);
    }
    socket.pipe(chain).pipe(socket);
  });

  const plant = (name: string, value: string, ...allowed: Sink[]): string => {
    planted.push({ name, value, allowed });
    return value;
  };
  /** Sends requests that no SDK would send, and keeps the answers. */
  async function send(path: string, init: RequestInit = {}): Promise<void> {
    const answer = await fetch(stack.baseUrl + path, init);
    const body = await answer.text();
    if (!answer.ok) errorBodies.push(body);
  }

  before(async function () {
    this.timeout(180_000);
    wire.listen(0, "127.0.0.1");
    await once(wire, "listening");
    stack = await startStack({
      dataDir,
      env: { LOG_LEVEL: "trace" },
      servicesRpcUrl: (url) => {
        chainPort = Number(new URL(url).port);
        return `http://user:${RPC_SECRET}@127.0.0.1:${(wire.address() as AddressInfo).port}/?key=${RPC_SECRET}`;
      },
      onLog: (service, line) => void (logs[service] += `${line}\n`),
    });
    await useEverything();
    await breakThings();
    await cutTheChainOff();
  });
  after(async function () {
    this.timeout(30_000);
    await stack?.stop();
    wire.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  async function useEverything(): Promise<void> {
    plant("RPC provider's key", RPC_SECRET);
    plant("Stripe's secret key", "sk_test_development");
    plant("Stripe's webhook secret", "whsec_development");
    const tee = openTee({ kind: "simulated", endpoint: join(dataDir, "dstack.sock") });
    plant("root key", `0x${(await tee.rootKey()).toString("hex")}`);
    await tee.close();

    const account = await makeAccount(stack.baseUrl);
    plant("account key", account.apiKey);
    const fixture = await makeGroup(account.client, KEY_THIEF);
    const bot = await makeUsageKey(account.client, stack.baseUrl, { execute_in_groups: [fixture.group] });
    plant("usage key", bot.key);
    for (const [code, say] of [
      [TALKER, plant("js_params, response and log of a run", canary("params"))],
      // The owner finds it in the list of runs for some days.
      [THROWER, plant("error of a run", canary("error"), "files")],
    ] as const) {
      const cid = await account.client.getActionIpfsId(code);
      await account.client.addActionToGroup({ group_id: fixture.group, action_ipfs_cid: cid });
      await bot.client.runAction({ code, js_params: { say } });
    }
    await bot.client
      .runAction({ code: `${TALKER} // ${plant("code of a refused run", canary("code"))}`, js_params: { say: "" } })
      .catch(() => undefined);
    const stolen = await bot.client.runAction({ code: KEY_THIEF, js_params: { pkpId: fixture.pkp } });
    expect(stolen).to.deep.include({ response: null, has_error: true });
    expect(stolen.error?.code).to.equal("key_exposed");
    const email = plant("e-mail address", `${canary("mail")}@example.org`, "files");
    await send("/core/v1/new_account", json({ account_name: "a", account_description: "", email }));
    await send("/core/v1/billing/create_payment_intent", json({ amount_cents: 500 }, { "x-api-key": account.apiKey }));
  }

  async function breakThings(): Promise<void> {
    const wrong = Buffer.from(randomBytes(32)).toString("base64");
    await send("/core/v1/list_groups", { headers: { "x-api-key": plant("unknown key", wrong) } });
    await send("/core/v1/list_groups", {
      headers: { authorization: `Bearer ${plant("malformed key", canary("bearer"))}` },
    });
    await send("/core/v1/list_groups", {
      headers: { "x-identity-token": plant("identity token", `${canary("jwt")}.e30.c2ln`) },
    });
    await send("/core/v1/billing/balance", { headers: { "x-wallet-auth": plant("wallet header", canary("wallet")) } });
    await send(`/core/v1/list_groups?api_key=${plant("key in a query", canary("query"))}`);
    await send(`/core/v1/groups/${plant("key in a path", canary("path"))}`, { headers: { "x-api-key": wrong } });
    await send("/core/v1/run_action", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: `{"code": "${plant("body that is no JSON", canary("broken"))}`,
    });
    await send(
      "/core/v1/run_action",
      json({ code: plant("code of a stranger", canary("stranger")), js_params: 7 }, { "x-api-key": wrong }),
    );
    await send("/core/v1/billing/webhook", {
      method: "POST",
      headers: { "stripe-signature": plant("webhook signature", canary("sig")) },
      body: plant("webhook body", canary("hook")),
    });
    const account = await makeAccount(stack.baseUrl);
    plant("second account key", account.apiKey);
    await refusal(
      account.client.runAction({
        code: TALKER,
        js_params: { say: plant("params of a refused run", canary("refused")) },
      }),
    );
    await refusal(
      account.client.removeUsageApiKey({
        usage_api_key: plant("key that is not there", Buffer.from(randomBytes(32)).toString("base64")),
      }),
    );
  }

  async function cutTheChainOff(): Promise<void> {
    const account = await makeAccount(stack.baseUrl);
    wire.close();
    sockets.forEach((socket) => socket.destroy());
    const body = json(
      { code: TALKER, js_params: { say: plant("params while the chain is away", canary("away")) } },
      { "x-api-key": plant("third account key", account.apiKey) },
    );
    await send("/core/v1/run_action", body);
    await send("/core/v1/create_wallet", json({}, { "x-api-key": account.apiKey }));
    await send("/ready");
    expect(errorBodies.join()).to.contain("chain_unavailable");
  }

  it("are in no sink, in no encoding", async () => {
    const sinks: Record<Sink, string> = {
      "relayer log": logs.relayer,
      "executor log": logs.executor,
      metrics: await (await fetch(stack.metricsUrl)).text(),
      files: [...contentsBelow(join(dataDir, "relayer")), ...contentsBelow(join(dataDir, "executor"))].join("\n"),
      "error bodies": errorBodies.join("\n"),
    };
    for (const [sink, text] of Object.entries(sinks))
      expect(text.length, `${sink} is empty: nothing would be found in it`).to.be.greaterThan(100);
    const found = planted.flatMap(({ name, value, allowed }) =>
      Object.entries(sinks)
        .filter(
          ([sink, text]) =>
            allowed?.includes(sink as Sink) !== true && spellings(value).some((spelling) => text.includes(spelling)),
        )
        .map(([sink]) => `${name} in ${sink}`),
    );
    expect(found).to.deep.equal([]);
  });

  it("would be found: the search finds what is stored by design", () => {
    const kept = planted.filter(({ allowed }) => allowed?.includes("files"));
    expect(kept.map(({ name }) => name)).to.deep.equal(["error of a run", "e-mail address"]);
    const files = contentsBelow(dataDir).join("\n");
    for (const { name, value } of kept) expect(files.includes(value), name).to.equal(true);
  });
});

const json = (body: unknown, headers: Record<string, string> = {}): RequestInit => ({
  method: "POST",
  headers: { "content-type": "application/json", ...headers },
  body: JSON.stringify(body),
});

/** Bytes as latin1, so that all of them are searchable. */
function contentsBelow(directory: string): string[] {
  return readdirSync(directory, { recursive: true })
    .map((name) => join(directory, String(name)))
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true)
    .map((path) => readFileSync(path, "latin1"));
}
