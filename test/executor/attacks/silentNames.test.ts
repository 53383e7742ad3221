import { expect } from "chai";
import { createSocket, type Socket } from "node:dgram";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createFetcher } from "../../../executor/fetcher/client";
import { Names } from "../../../executor/fetcher/names";
import { FetchFailed, type Fetcher, type GuestRequest } from "../../../executor/fetcher/types";
import { RUN_LIMITS } from "../../../protocol/limits";
import { cidOfCode } from "../../../protocol/cid";
import { silent } from "../../support/sandbox";
import { expectInTime, itInTime } from "../../support/inTime";

const CODE = "async function main() { return 1; }";
const nothing = Buffer.alloc(0);
const request = (url: string): GuestRequest => ({
  url,
  method: "GET",
  headers: [],
  redirect: "follow",
  timeoutMs: 10_000,
  maxBytes: 1_000,
});
const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "answered",
    (error: unknown) => (error instanceof FetchFailed ? error.code : String(error)),
  );

describe("attack: names that never resolve", function () {
  this.timeout(30_000);
  let nameServer: Socket;
  let asked = 0;
  let fetcher: Fetcher;
  const gateway = createServer((_, response) => response.end(CODE));
  const servers = (): string[] => [`127.0.0.1:${nameServer.address().port}`];

  before(async () => {
    nameServer = createSocket("udp4").on("message", () => asked++);
    await new Promise<void>((resolve) => nameServer.bind(0, "127.0.0.1", resolve));
    await new Promise<void>((resolve) => gateway.listen(0, "127.0.0.1", resolve));
    const at = `localhost:${(gateway.address() as AddressInfo).port}`;
    fetcher = await createFetcher({
      logger: silent,
      gateways: [`http://${at}`],
      allowHosts: [at],
      dnsServers: servers(),
    });
  });
  after(async () => {
    await fetcher.close();
    nameServer.close();
    gateway.close();
  });

  it("delay neither code from gateways nor another account's fetch, and end after two seconds", async () => {
    const startedAt = performance.now();
    const attack = Array.from({ length: 50 }, (_, i) =>
      codeOf(fetcher.fetchGuest(request(`http://never-${i}.test/`), nothing, { run: i, lookups: 20 })),
    );
    let hasEnded = false;
    const ended = Promise.all(attack).finally(() => (hasEnded = true));
    expect((await fetcher.fetchCode(await cidOfCode(CODE), 1_000)).toString()).to.equal(CODE);
    const neighbour = await fetcher.fetchGuest(
      request(`http://localhost:${(gateway.address() as AddressInfo).port}/`),
      nothing,
      { run: 99, lookups: 20 },
    );
    expect(neighbour.body.toString()).to.equal(CODE);
    expect(hasEnded, "both were served while the attack was on").to.equal(false);
    expect(new Set(await ended)).to.deep.equal(new Set(["failed"]));
    expect(performance.now() - startedAt).to.be.within(1_500, 8_000);
  });

  it("are counted for their run, each once while it is pending", async () => {
    const { lookups } = RUN_LIMITS;
    const at = `localhost:${(gateway.address() as AddressInfo).port}`;
    const fetch = (url: string, timeoutMs = 10_000): Promise<string> =>
      codeOf(fetcher.fetchGuest({ ...request(url), timeoutMs }, nothing, { run: 1_000, lookups }));
    for (let i = 0; i < 30; i++) expect(await fetch(`http://${at}/`)).to.equal("answered");
    for (let i = 0; i < lookups - 1; i++) expect(await fetch(`http://never-${i}.test/`, 50)).to.equal("timed_out");
    expect(await fetch("http://one-more.test/")).to.equal("limit_exceeded");
    expect(await fetch(`http://${at}/`), "a name it knows").to.equal("answered");
  });

  itInTime("are abandoned with the fetch that asked for them", async () => {
    const names = new Names({ servers: servers() });
    const stop = new AbortController();
    const before = asked;
    const startedAt = performance.now();
    const looking = codeOf(names.lookup("never.test", stop.signal));
    setTimeout(() => stop.abort(), 50);
    expect(await looking).to.equal("failed");
    expectInTime(performance.now() - startedAt, 1_500);
    expect(asked).to.be.above(before);
  });

  it("leave names of the hosts file to the hosts file", async () => {
    const before = asked;
    const addresses = await new Names({ servers: servers() }).lookup("LocalHost");
    expect(addresses.map(({ address }) => address)).to.include("127.0.0.1");
    expect(asked).to.equal(before);
  });
});
