/** A body in very many small pieces ends its connection, whether or not anybody reads it. */
import { expect } from "chai";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { CountedRequest } from "../../protocol/pieces";

const CHUNKS = 100_000;
const CHUNK = "1\r\nx\r\n";

describe("the pieces of a request's body", () => {
  let server: Server;
  let port: number;
  let pieces: number;

  before(async () => {
    server = createServer({ IncomingMessage: CountedRequest }, (request, response) => {
      if (request.url === "/unread") return void response.end("no");
      request.on("data", () => pieces++);
      text(request).then(
        (body) => response.end(String(body.length)),
        () => undefined,
      );
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    port = (server.address() as AddressInfo).port;
  });
  beforeEach(() => (pieces = 0));
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  function asking(path: string, headers: string): Socket {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\n${headers}\r\n\r\n`);
    return socket;
  }
  /** What the server has answered by the time that the connection is closed, or after a while. */
  async function sent(path: string, count: number): Promise<{ readonly isClosed: boolean; readonly answer: string }> {
    const socket = asking(path, "transfer-encoding: chunked");
    let answer = "";
    socket.on("data", (data: Buffer) => (answer += data.toString()));
    // It may close with an error, too.
    const closed = new Promise<boolean>((resolve) => socket.once("close", () => resolve(true)));
    for (let left = count; left > 0 && !socket.destroyed; left -= 1_000) {
      socket.write(CHUNK.repeat(Math.min(left, 1_000)));
      await sleep(1);
    }
    socket.write("0\r\n\r\n");
    return { isClosed: await Promise.race([closed, sleep(500, false)]), answer };
  }

  it("may be some hundreds, however short", async () => {
    expect((await sent("/read", 500)).answer).to.match(/500$/);
  });

  it("end their connection where they are too many", async () => {
    expect(await sent("/read", CHUNKS)).to.deep.equal({ isClosed: true, answer: "" });
    expect(pieces).to.be.within(1_000, 1_100);
  });

  it("are counted after the answer, too, where nobody reads them", async () => {
    const { isClosed, answer } = await sent("/unread", CHUNKS);
    expect(isClosed).to.equal(true);
    expect(answer).to.match(/no$/);
  });

  it("may be as many as their length needs", async () => {
    const body = "y".repeat(20_000_000);
    const socket = asking("/read", `content-length: ${body.length}`);
    let answer = "";
    socket.on("data", (data: Buffer) => (answer += data.toString()));
    socket.write(body);
    while (!/20000000$/.test(answer) && !socket.destroyed) await sleep(20);
    expect(answer).to.match(/20000000$/);
    socket.destroy();
  });
});
