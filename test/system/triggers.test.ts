/**
 * Schedules, events of two chains and a hook across the death of relayer and executor: each fires once, and none is
 * lost.
 */
import { expect } from "chai";
import { actionHashOf } from "../../protocol/ids";
import { cidOfCode } from "../../protocol/cid";
import { startChain, type DevelopmentChain } from "../../scripts/dev/chain";
import { freePort } from "../../scripts/dev/ports";
import { startStack, type Stack } from "../../scripts/dev/stack";
import { connect } from "../support/chain";
import { eventually } from "../support/chainBed";
import { deployEmitter } from "../support/emitter";
import { codeOf, newApiAccount, send, type ApiAccount } from "../support/http";

const CODE = `async function main({ trigger }) { return trigger; }`;
const TOPIC = `0x${"ab".repeat(32)}`;
const MINUTE_MS = 60_000;
const OTHER_CHAIN = 31_338n;
type Run = { readonly request_id: string; readonly outcome: string; readonly trigger_id?: string };
type Firing = {
  readonly id: string;
  readonly cause: string;
  readonly state: string;
  readonly outcome?: string;
  readonly due_at: string;
};

describe("triggers across the death of relayer and executor", function () {
  this.timeout(300_000);
  let stack: Stack;
  let account: ApiAccount;
  let other: DevelopmentChain;
  before(async () => {
    other = await startChain({ port: await freePort(), chainId: OTHER_CHAIN });
    stack = await startStack({ env: { EVENT_RPC_URLS: `${OTHER_CHAIN}=${other.rpcUrl}` } });
    account = await newApiAccount(stack.baseUrl);
    const cid_hashes_permitted = [actionHashOf(await cidOfCode(CODE))];
    await account.api.must("/add_group", { group_name: "t", group_description: "", cid_hashes_permitted });
  });
  after(async () => {
    await stack?.stop();
    await other?.process.stop();
  });

  const make = async (fields: object): Promise<string> =>
    String((await account.api.must("/triggers", { name: "t", code: CODE, ...fields }))["id"]);
  /** Also while the relayer is away: then none are known. */
  const firingsOf = async (id: string): Promise<Firing[]> => {
    const answer = await account.api.get(`/triggers/${id}/firings`).catch(() => undefined);
    return Array.isArray(answer?.body) ? (answer.body as Firing[]) : [];
  };
  const succeeded = async (id: string, causes: number): Promise<boolean> =>
    (await firingsOf(id)).filter(({ outcome }) => outcome === "succeeded").length >= causes;

  /** Every run that was charged is of one firing, and every firing that succeeded has one. */
  async function requireOneRunEach(ids: readonly string[]): Promise<void> {
    const firings = (await Promise.all(ids.map(firingsOf))).flat();
    const made = firings.filter(({ outcome }) => outcome === "succeeded").map(({ id }) => id);
    let runs: readonly Run[] = [];
    await eventually("all runs are recorded", async () => {
      runs = (await account.api.get("/list_runs?page_size=1000")).body as Run[];
      return made.every((id) => runs.some(({ request_id }) => request_id === id));
    });
    const ofTriggers = runs.filter(({ trigger_id }) => ids.includes(String(trigger_id))).map((run) => run.request_id);
    expect(new Set(ofTriggers).size).to.equal(ofTriggers.length);
    expect(firings.map(({ id }) => id)).to.include.members(ofTriggers);
  }

  it("reads no other chain than those configured, and says which endpoints in the attested config", async () => {
    const event = { address: `0x${"0".repeat(40)}`, chain_id: 10 };
    const refused = await account.api.post("/triggers", { name: "t", code: CODE, event });
    expect(codeOf(refused)).to.equal("invalid_value");
    expect(JSON.stringify(refused.body)).to.contain("31337, 31338");
    const { config } = (await (await fetch(`${stack.baseUrl}/info`)).json()) as {
      config: { rpc: { event_hosts: unknown } };
    };
    expect(config.rpc.event_hosts).to.deep.equal({ [String(OTHER_CHAIN)]: [new URL(other.rpcUrl).host] });
  });

  it("fires each once", async () => {
    const provider = connect(stack.rpcUrl);
    const elsewhere = connect(other.rpcUrl);
    const far = await deployEmitter(await elsewhere.getSigner(4));
    const emitter = await deployEmitter(await provider.getSigner(4));
    const schedule = await make({ schedule: { cron: "* * * * *", time_zone: "Europe/Berlin", missed: "once" } });
    const event = await make({ event: { address: emitter.address, topics: [TOPIC], confirmations: 2 } });
    const strict = await make({ schedule: { cron: "* * * * *" } });
    const abroad = await make({ event: { address: far.address, chain_id: Number(OTHER_CHAIN), confirmations: 2 } });
    const hook = await make({ hook: { verification: "none" } });
    /** A sender repeats what was not answered; here it does not, and only answered requests have to fire. */
    let answered = 0;
    const call = async (): Promise<void> => {
      const url = `${stack.baseUrl}/core/v1/hooks/${hook}`;
      const answer = await send(url, { method: "POST", body: { n: 1 } }).catch(() => undefined);
      if (answer?.status === 200) answered += 1;
    };
    const emitted: string[] = [];
    const emittedAbroad: string[] = [];
    const act = async (): Promise<void> => {
      emitted.push((await emitter.emit(TOPIC, emitted.length)).hash);
      emittedAbroad.push((await far.emit(TOPIC, emitted.length)).hash);
      await call();
    };
    await act();
    await Promise.all([act(), stack.restart("executor", "SIGKILL")]);
    await act();
    await stack.restart("relayer", "SIGKILL");
    emitted.push((await emitter.emit(TOPIC, 9)).hash);
    await Promise.all([act(), stack.restart("relayer", "SIGKILL")]);
    await eventually(
      "all logs",
      async () => {
        const causes = (await firingsOf(event)).filter(({ state }) => state === "ended").map(({ cause }) => cause);
        return emitted.every((hash) => causes.includes(`log:${hash}:0`));
      },
      60_000,
    );
    const ended = (all: readonly Firing[]): Firing[] => all.filter(({ state }) => state === "ended");
    await elsewhere.send("evm_mine", []);
    await eventually("all logs of the other chain", async () => {
      const causes = (await firingsOf(abroad)).filter(({ state }) => state === "ended").map(({ cause }) => cause);
      return emittedAbroad.every((hash) => causes.includes(`log:${hash}:0`));
    });
    await eventually("hooks", async () => ended(await firingsOf(hook)).length >= answered, 30_000);
    await eventually("a due time", () => succeeded(schedule, 1), 2 * MINUTE_MS);
    await eventually("a due time after the restarts", () => succeeded(strict, 1), 2 * MINUTE_MS);
    const all = [schedule, strict, event, abroad, hook];
    await requireOneRunEach(all);
    for (const id of all) {
      const firings = await firingsOf(id);
      expect(new Set(firings.map(({ cause }) => cause)).size).to.equal(firings.length);
      for (const { outcome, state } of firings)
        if (state === "ended") expect(["succeeded", "interrupted", "missed"]).to.include(outcome);
    }
    const [newest] = await firingsOf(schedule);
    expect(Date.parse(String(newest?.due_at)) % MINUTE_MS).to.equal(0);
    expect(answered).to.be.at.least(2);
    provider.destroy();
    elsewhere.destroy();
  });
});
