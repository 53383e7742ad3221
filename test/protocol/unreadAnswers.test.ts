/** Answers that nobody reads end; slow readers, and requests that take long, do not. */
import { expect } from "chai";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { must } from "../support/must";
import { endUnreadAnswers } from "../../protocol/unreadAnswers";

const WITHIN_MS = 300;
/** More than the system keeps of one connection. */
const ANSWER = Buffer.alloc(32 * 1_024 * 1_024, "a");

const SMALLER = ANSWER.subarray(0, (ANSWER.length * 3) / 4);

const SUM_BYTES = 4 * ANSWER.length;

describe("an answer that is not read", () => {
  let server: Server;
  let port: number;
  const sockets: Socket[] = [];
  const CROWD = "192.0.2.1";

  before(async () => {
    server = createServer((request, response) => {
      if (request.url === "/large") response.end(ANSWER);
      else if (request.url === "/smaller") response.end(SMALLER);
      else setTimeout(() => response.end("late"), 4 * WITHIN_MS);
    });
    const clientOf = ({ headers }: IncomingMessage): string => String(headers["x-forwarded-for"] ?? CROWD);
    endUnreadAnswers(server, { withinMs: WITHIN_MS, bytes: SUM_BYTES, clientOf });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    port = (server.address() as AddressInfo).port;
  });
  after(() => {
    for (const socket of sockets) socket.destroy();
    server.closeAllConnections();
    server.close();
  });

  async function asking(path: string, more = "", client = CROWD): Promise<Socket> {
    const socket = connect(port, "127.0.0.1");
    sockets.push(socket);
    socket.on("error", () => undefined);
    socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nx-forwarded-for: ${client}\r\n\r\n${more}`);
    const [served] = (await once(server, "connection")) as [Socket];
    return Object.assign(socket, { served });
  }
  const servedOf = (socket: Socket): Socket => (socket as Socket & { served: Socket }).served;

  it("ends with its connection, also one of several that were asked for at once", async () => {
    const socket = await asking("/large");
    socket.write("GET /large HTTP/1.1\r\nhost: x\r\n\r\n".repeat(3));
    await once(servedOf(socket), "close");
    expect(servedOf(socket).destroyed).to.equal(true);
  });

  it("goes on while the client reads slowly", async () => {
    const socket = await asking("/large");
    let [read, allowed] = [0, 0];
    socket.on("data", (chunk: Buffer) => {
      read += chunk.length;
      if (read >= allowed) socket.pause();
    });
    for (let turn = 0; turn < 12; turn++) {
      await sleep(WITHIN_MS / 3);
      allowed += 1_000_000;
      socket.resume();
    }
    expect(servedOf(socket).destroyed).to.equal(false);
    expect(read).to.be.greaterThan(10_000_000);
  });

  /** Clients that take a little now and then, and so are never ended for taking nothing. */
  async function nibbling(count: number, ask: (i: number) => Promise<Socket>): Promise<readonly Socket[]> {
    const crowd: Socket[] = [];
    for (let i = 0; i < count; i++) crowd.push(await ask(i));
    for (const socket of crowd) socket.pause();
    const timer = setInterval(() => {
      for (const socket of crowd) socket.read(1_000_000);
      if (crowd.every(({ destroyed }) => destroyed)) clearInterval(timer);
    }, WITHIN_MS / 4);
    return crowd;
  }
  const open = (crowd: readonly Socket[]): Socket[] => crowd.map(servedOf).filter((socket) => !socket.destroyed);

  it("ends where all of them are too much in sum, first that of whoever left most for longest", async () => {
    const crowd = await nibbling(8, () => asking("/large"));
    await sleep(2 * WITHIN_MS);
    const reader = await asking("/large");
    let read = 0;
    reader.on("data", (chunk: Buffer) => (read += chunk.length));
    await sleep(4 * WITHIN_MS);
    const left = open(crowd);
    expect(left.reduce((sum, socket) => sum + socket.writableLength, 0)).to.be.at.most(SUM_BYTES);
    expect(left.length).to.be.within(1, 7);
    expect(read).to.be.greaterThan(ANSWER.length);
    for (const socket of crowd) socket.destroy();
  });

  it("ends also where most of it is of requests that were sent behind the first", async () => {
    const crowd = await nibbling(2, () => asking("/large", "GET /large HTTP/1.1\r\nhost: x\r\n\r\n".repeat(5)));
    await sleep(2 * WITHIN_MS);
    expect(open(crowd).length).to.be.lessThan(2);
    for (const socket of crowd) socket.destroy();
  });

  it("ends first where its client leaves most, so that a crowd of small ones ends no other", async () => {
    // A proxy's connection, which served one of the crowd before.
    const other = await asking("/", `GET /large HTTP/1.1\r\nhost: x\r\nx-forwarded-for: 198.51.100.1\r\n\r\n`);
    other.on("data", () => {
      other.pause();
      setTimeout(() => other.resume(), 1);
    });
    await sleep(WITHIN_MS);
    const crowd = await nibbling(8, () => asking("/large"));
    await sleep(3 * WITHIN_MS);
    expect(servedOf(other).destroyed).to.equal(false);
    expect(open(crowd).length).to.be.lessThan(8);
    for (const socket of [other, ...crowd]) socket.destroy();
  });

  it("ends first where its network leaves most, also where each of its addresses leaves less than others", async () => {
    const [other] = await nibbling(1, () => asking("/large", "", "203.0.113.7"));
    const crowd = await nibbling(6, (i) => asking("/smaller", "", `2001:db8:0:${i}::1`));
    await sleep(2 * WITHIN_MS);
    expect(open([must(other)])).to.have.length(1);
    expect(open(crowd).length).to.be.lessThan(6);
    for (const socket of [must(other), ...crowd]) socket.destroy();
  });

  it("is not one that is not there yet, also behind another on the same connection", async () => {
    const socket = await asking("/late");
    socket.write("GET /late HTTP/1.1\r\nhost: x\r\n\r\n");
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
    await sleep(10 * WITHIN_MS);
    expect(text.match(/late/g)).to.have.length(2);
  });
});
