/** A schedule, an event and a hook across the death of relayer and executor: each fires once, and none is lost. */
import { expect } from "chai";
import { actionHashOf } from "../../protocol/ids";
import { cidOfCode } from "../../protocol/cid";
import { startStack, type Stack } from "../../scripts/dev/stack";
import { connect } from "../support/chain";
import { eventually } from "../support/chainBed";
import { deployEmitter } from "../support/emitter";
import { newApiAccount, send, type ApiAccount } from "../support/http";

const CODE = `async function main({ trigger }) { return trigger; }`;
const TOPIC = `0x${"ab".repeat(32)}`;
const MINUTE_MS = 60_000;
type Firing = { readonly cause: string; readonly state: string; readonly outcome?: string; readonly due_at: string };

describe("triggers across the death of relayer and executor", function () {
  this.timeout(300_000);
  let stack: Stack;
  let account: ApiAccount;
  before(async () => {
    stack = await startStack({});
    account = await newApiAccount(stack.baseUrl);
    const cid_hashes_permitted = [actionHashOf(await cidOfCode(CODE))];
    await account.api.must("/add_group", { group_name: "t", group_description: "", cid_hashes_permitted });
  });
  after(() => stack?.stop());

  const make = async (fields: object): Promise<string> =>
    String((await account.api.must("/triggers", { name: "t", code: CODE, ...fields }))["id"]);
  /** Also while the relayer is away: then none are known. */
  const firingsOf = async (id: string): Promise<Firing[]> => {
    const answer = await account.api.get(`/triggers/${id}/firings`).catch(() => undefined);
    return Array.isArray(answer?.body) ? (answer.body as Firing[]) : [];
  };
  const succeeded = async (id: string, causes: number): Promise<boolean> =>
    (await firingsOf(id)).filter(({ outcome }) => outcome === "succeeded").length >= causes;

  it("fires each once", async () => {
    const provider = connect(stack.rpcUrl);
    const emitter = await deployEmitter(await provider.getSigner(4));
    const schedule = await make({ schedule: { cron: "* * * * *", time_zone: "Europe/Berlin", missed: "once" } });
    const event = await make({ event: { address: emitter.address, topics: [TOPIC], confirmations: 2 } });
    const hook = await make({ hook: { verification: "none" } });
    /** A sender repeats what was not answered; here it does not, and only answered requests have to fire. */
    let answered = 0;
    const call = async (): Promise<void> => {
      const url = `${stack.baseUrl}/core/v1/hooks/${hook}`;
      const answer = await send(url, { method: "POST", body: { n: 1 } }).catch(() => undefined);
      if (answer?.status === 200) answered += 1;
    };
    const emitted: string[] = [];
    const act = async (): Promise<void> => {
      emitted.push((await emitter.emit(TOPIC, emitted.length)).hash);
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
    await eventually("hooks", async () => ended(await firingsOf(hook)).length >= answered, 30_000);
    await eventually("a due time", () => succeeded(schedule, 1), 2 * MINUTE_MS);
    for (const id of [schedule, event, hook]) {
      const all = await firingsOf(id);
      expect(new Set(all.map(({ cause }) => cause)).size).to.equal(all.length);
      for (const { outcome, state } of all)
        if (state === "ended") expect(["succeeded", "interrupted", "missed"]).to.include(outcome);
    }
    const [newest] = await firingsOf(schedule);
    expect(Date.parse(String(newest?.due_at)) % MINUTE_MS).to.equal(0);
    expect(answered).to.be.at.least(2);
    provider.destroy();
  });
});
