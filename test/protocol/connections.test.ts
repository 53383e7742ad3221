/** Many idle connections from one address leave room for others, however many there are. */
import { expect } from "chai";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { shareConnections } from "../../protocol/connections";
import { eventually } from "../support/chainBed";

const TOTAL = 64;
const WITH_WAITING = TOTAL + TOTAL / 8;

describe("connections of a server", () => {
  let server: Server;
  let opened: Socket[] = [];
  let accepted = 0;

  beforeEach(async () => {
    server = createServer((_request, response) => response.end("answer")).listen(0, "127.0.0.1");
    server.on("connection", () => accepted++);
    shareConnections([server], { total: TOTAL });
    await once(server, "listening");
  });
  afterEach(() => {
    for (const socket of opened.splice(0)) socket.destroy();
    server.closeAllConnections();
    server.close();
  });

  /** Connections from 127.0.0.<host> that send nothing. */
  const idle = (host: number, count: number): Promise<Socket[]> =>
    idleFrom(Array.from({ length: count }, () => `127.0.0.${host}`));
  async function idleFrom(addresses: readonly string[]): Promise<Socket[]> {
    const before = accepted;
    const sockets = addresses.map((localAddress) => {
      const { port } = server.address() as AddressInfo;
      return connect({ port, host: "127.0.0.1", localAddress }).on("error", () => undefined);
    });
    opened = [...opened, ...sockets];
    await Promise.all(sockets.map((socket) => once(socket, "connect")));
    await eventually("the server has them", () => accepted >= before + addresses.length);
    return sockets;
  }
  const open = (): Promise<number> =>
    new Promise((resolve, reject) =>
      server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
    );
  async function answerOn(socket: Socket): Promise<string> {
    socket.write("GET / HTTP/1.1\r\nhost: x\r\nconnection: keep-alive\r\n\r\n");
    const [data] = (await once(socket, "data", { signal: AbortSignal.timeout(2_000) })) as [Buffer];
    return data.toString("latin1");
  }

  it("are no more than the total and those that wait, of one address or of many", async () => {
    await idle(2, 3 * TOTAL);
    await eventually("the rest is ended", async () => (await open()) <= WITH_WAITING);
    for (let host = 3; host < 9; host++) await idle(host, TOTAL);
    await eventually("here too", async () => (await open()) <= WITH_WAITING);
  });

  it("are bounded also where each has an address of its own, and one of another network is served", async () => {
    const network = (part: number): string[] => Array.from({ length: 2.5 * TOTAL }, (_, i) => `127.0.${part}.${i + 1}`);
    await idleFrom([...network(1), ...network(2)]);
    await sleep(50);
    expect(await open()).to.be.within(TOTAL / 2, WITH_WAITING);
    const [newcomer] = await idleFrom(["127.0.9.1"]);
    if (newcomer === undefined) throw new Error("there is one");
    expect(await answerOn(newcomer)).to.contain("200 OK");
  });

  it("are never more than those and twice as many that wait, of whatever networks", async () => {
    await idleFrom(Array.from({ length: 5 * TOTAL }, (_, i) => `127.${(i >> 6) + 1}.${i & 63}.1`));
    await sleep(50);
    expect(await open()).to.be.within(TOTAL / 2, TOTAL + TOTAL / 4);
  });

  it("are kept by a newcomer, while whoever has most loses them", async () => {
    const greedy = await idle(2, 2 * TOTAL);
    const [newcomer] = await idle(3, 1);
    if (newcomer === undefined) throw new Error("there is one");
    expect(await answerOn(newcomer)).to.contain("200 OK");
    const many = await idle(4, 3);
    await sleep(600);
    expect(await answerOn(newcomer)).to.contain("200 OK");
    expect(many.filter(({ destroyed }) => destroyed).length).to.equal(0);
    for (const socket of many) expect(await answerOn(socket)).to.contain("200 OK");
    expect(greedy.filter(({ destroyed }) => !destroyed).length).to.be.lessThan(TOTAL);
  });

  it("are all given back when they close", async () => {
    const first = await idle(2, 2 * TOTAL);
    for (const socket of first) socket.destroy();
    await eventually("all are closed", async () => (await open()) === 0);
    const second = await idle(2, TOTAL / 2);
    await sleep(600);
    for (const socket of second) expect(await answerOn(socket)).to.contain("200 OK");
  });
});
