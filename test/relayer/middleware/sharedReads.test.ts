/** Accounts share a relayer's reads: 64 keys of one account do not keep another account's waiting. */
import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { AccountId, Hash32 } from "../../../protocol/ids";
import { createLogger } from "../../../protocol/log";
import { createApp, type AppOptions } from "../../../relayer/app";
import type { Presented } from "../../../relayer/middleware/call";
import { RequestLimits } from "../../../relayer/middleware/rateLimits";
import { eventually } from "../../support/chainBed";
import { codeOf, send, type HttpAnswer } from "../../support/http";
import { UNLIMITED } from "../../support/relayerBed";

const READ_MS = 50;
const KEYS = 64;
const READS_EACH = 16;

/** Keys begin with the letter of their account. */
const keyOf = (account: string, number: number): string =>
  Buffer.from(account.padEnd(30, "k") + String(number).padStart(2, "0")).toString("base64");

describe("reads of a relayer", () => {
  let server: Server;
  let baseUrl: string;
  let under = new Map<string, number>();
  let most = new Map<string, number>();
  const answered: string[] = [];
  /** Reads end after it. */
  let gate: Promise<unknown> = Promise.resolve();
  /** How many reads had been answered when the last one of the account came. */
  const cameAt = new Map<string, number>();
  const othersBefore = (account: string): number => answered.lastIndexOf(account) - (cameAt.get(account) ?? 0);

  before(async () => {
    const read = async ({ caller }: { caller: { accountId: AccountId } }): Promise<[]> => {
      const count = (change: number): number => {
        const now = (under.get(caller.accountId) ?? 0) + change;
        under.set(caller.accountId, now);
        return now;
      };
      const now = count(1);
      most.set(caller.accountId, Math.max(now, most.get(caller.accountId) ?? 0));
      await Promise.all([sleep(READ_MS), gate]);
      count(-1);
      answered.push(caller.accountId);
      return [];
    };
    const options = {
      handlers: { listWebhooks: read, listWallets: read },
      authentication: {
        isFamiliar: () => true,
        identify: (_auth: string, { key }: Presented) => {
          const accountId = Buffer.from(key?.text ?? "", "base64").toString()[0] as AccountId;
          const actorId = key?.id as Hash32;
          cameAt.set(accountId, answered.length);
          return { remembered: undefined, caller: async () => ({ accountId, actorId, isOwner: true, managed: true }) };
        },
      },
      limits: new RequestLimits(UNLIMITED),
      log: createLogger("silent", "relayer"),
      serviceName: "Keywright",
      addressHashKey: "test",
      trustedProxyHops: 0,
      onAnswered: () => undefined,
    } as unknown as AppOptions;
    server = createApp(options).listen(0, "127.0.0.1");
    await once(server, "listening");
    baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  beforeEach(() => {
    under = new Map();
    most = new Map();
    answered.splice(0);
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  const ask = (account: string, number: number, path = "/webhooks"): Promise<HttpAnswer> =>
    send(`${baseUrl}/core/v1${path}`, { key: keyOf(account, number) });
  /** So many reads of each of the account's keys, once they wait for each other. */
  async function flood(account: string, path: string, each = READS_EACH): Promise<HttpAnswer[]> {
    const answers = Array.from({ length: KEYS * each }, (_, i) => ask(account, i % KEYS, path));
    await eventually("they are under way", () => answered.length > 0);
    return Promise.all(answers);
  }

  it("of one account with 64 keys keep another account's waiting for no more than a few of them", async () => {
    const attack = flood("a", "/webhooks");
    for (let i = 0; i < 5; i++) {
      await sleep(2 * READ_MS);
      expect((await ask("b", 1)).status).to.equal(200);
      expect(othersBefore("b"), "others' reads first").to.be.within(0, 24);
    }
    await attack;
    expect(most.get("a")).to.be.at.most(6);
  });

  it("are refused where 512 wait, and only then", async () => {
    const open = Promise.withResolvers<undefined>();
    gate = open.promise;
    const answers: HttpAnswer[] = [];
    const asked = Array.from({ length: KEYS * READS_EACH }, async (_, i) => answers.push(await ask("a", i % KEYS)));
    const refused = asked.length - 512 - 6;
    await eventually("those that may wait do", () => answers.length === refused, 20_000);
    for (const answer of answers) {
      expect([answer.status, codeOf(answer)]).to.deep.equal([429, "queue_full"]);
      expect(Number(answer.headers["retry-after"])).to.be.within(1, 60);
    }
    open.resolve(undefined);
    await Promise.all(asked);
    expect(answers.slice(refused).every(({ status }) => status === 200)).to.equal(true);
  }).timeout(60_000);

  it("that search or list many records are few at a time, and hold up no others", async () => {
    const attacks = ["a", "b", "c"].flatMap((account) => [
      flood(account, "/list_wallets?search=x", 1),
      flood(account, "/list_wallets?page_size=1000", 1),
    ]);
    await sleep(2 * READ_MS);
    expect((await ask("d", 1, "/list_wallets")).status).to.equal(200);
    expect(othersBefore("d"), "others' reads first").to.be.within(0, 24);
    await Promise.all(attacks);
    for (const account of ["a", "b", "c"]) expect(most.get(account), "a search and three lists").to.equal(4);
  });
});
