/** Servers that answer in pieces of one byte, each of which costs more than it carries. */
import { expect } from "chai";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { exchange } from "../../../executor/fetcher/exchange";
import { failure, nothing, request } from "../../support/guestFetch";

describe("attack: answers in pieces of one byte", function () {
  this.timeout(20_000);
  let pieces = 0;
  const server = createServer((incoming, response) => {
    // In the framing of chunks, as one write: a piece of one byte is six bytes on the wire.
    const [bytes = 1, count = 1] = (incoming.url ?? "").slice(1).split("x").map(Number);
    pieces = count;
    response.socket?.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
    response.socket?.end(`${bytes.toString(16)}\r\n${"y".repeat(bytes)}\r\n`.repeat(count) + "0\r\n\r\n");
  });
  let at = "";
  before(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    at = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => void (server.closeAllConnections(), server.close()));
  const rules = (): { allowHosts: string[]; ports: number[] } => ({ allowHosts: [at], ports: [] });

  it("are refused after some thousands; as many larger ones are not", async () => {
    const { code } = await failure(exchange(request(`http://${at}/1x100000`, { maxBytes: 200_000 }), nothing, rules()));
    expect(code).to.equal("limit_exceeded");
    const most = 4_000_000;
    const { body } = await exchange(request(`http://${at}/100x30000`, { maxBytes: most }), nothing, rules());
    expect([body.length, pieces]).to.deep.equal([3_000_000, 30_000]);
  });

  it("are read 32 at a time, each time when it is the account's turn", async () => {
    const waiting: (() => void)[] = [];
    const takeTurn = (work: () => void): Promise<void> =>
      new Promise((resolve) => waiting.push(() => (work(), resolve())));
    let isOver = false;
    const answer = exchange(request(`http://${at}/1x1000`, { maxBytes: 10_000 }), nothing, { ...rules(), takeTurn });
    void answer.finally(() => (isOver = true));
    let turns = 0;
    while (!isOver) {
      await pause(1);
      expect(waiting.length, "turns asked for at once").to.be.at.most(1);
      if (waiting.length === 0) continue;
      turns++;
      waiting.shift()?.();
    }
    expect([(await answer).body.toString(), turns]).to.deep.equal(["y".repeat(1_000), Math.floor(1_000 / 32)]);
  });

  it("end with their fetch while they wait for a turn", async () => {
    const takeTurn = (): Promise<void> => new Promise(() => undefined);
    const slow = request(`http://${at}/1x1000`, { maxBytes: 10_000, timeoutMs: 300 });
    const { code } = await failure(exchange(slow, nothing, { ...rules(), takeTurn }));
    expect(code).to.equal("timed_out");
  });
});
