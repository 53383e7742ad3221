/** Servers whose answers cost more to decode, or to pass over, than they carry. */
import { expect } from "chai";
import { createServer, type Server } from "node:net";
import type { AddressInfo } from "node:net";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { exchange } from "../../../executor/fetcher/exchange";
import type { FetchFailed } from "../../../executor/fetcher/types";
import { failure, nothing, request } from "../../support/guestFetch";

/** The header of a frame whose window is 128 MiB, after which nothing comes. */
const WIDE_ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x88]);
/** Of deflate: stored, without bytes, and not the last. */
const EMPTY_BLOCK = Buffer.from([0, 0, 0, 0xff, 0xff]);

describe("attack: answers that cost more than they carry", function () {
  this.timeout(20_000);
  let server: Server;
  let answer: Buffer = nothing;
  let at = "";
  before(async () => {
    server = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", () => socket.write(answer));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    at = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => void server.close());

  const get = (): ReturnType<typeof exchange> =>
    exchange(request(`http://${at}/`, { timeoutMs: 5_000 }), nothing, { allowHosts: [at], ports: [] });
  const coded = (coding: string, body: Buffer): Buffer =>
    Buffer.concat([
      Buffer.from(`HTTP/1.1 200 OK\r\ncontent-encoding: ${coding}\r\ncontent-length: ${body.length}\r\n\r\n`),
      body,
    ]);

  const shown = (coding: string): string => coding.split(/,\s?/).join(", ");

  it("are read in codings with a small window, one at a time", async () => {
    for (const [coding, body] of [
      ["identity", Buffer.from("text")],
      ["gzip", gzipSync("text")],
      ["X-GZip", gzipSync("text")],
      ["deflate", deflateSync("text")],
      ["", Buffer.from("text")],
      ["utf-8", Buffer.from("text")],
    ] as const) {
      answer = coded(coding, body);
      expect((await get()).body.toString(), coding).to.equal("text");
    }
  });

  it("are refused in others at once, which the request does not ask for", async () => {
    for (const [coding, body] of [
      ["zstd", WIDE_ZSTD],
      ["br", brotliCompressSync("text")],
      ["gzip, br", brotliCompressSync(Buffer.concat(Array<Buffer>(100_000).fill(EMPTY_BLOCK)))],
      ["gzip, gzip", gzipSync(gzipSync("text"))],
      ["gzip,gzip,gzip,gzip,gzip", nothing],
    ] as const) {
      answer = coded(coding, body);
      const { code, message } = (await failure(get())) as FetchFailed;
      expect([code, message], coding).to.deep.equal([
        "limit_exceeded",
        `the answer of ${at} is encoded as ${shown(coding)}: only gzip, deflate are read, one of them`,
      ]);
    }
  });

  it("are refused after some early hints; a few are passed over", async () => {
    const hint = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
    answer = Buffer.from(`${hint.repeat(3)}HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok`);
    expect((await get()).body.toString()).to.equal("ok");
    answer = Buffer.from(hint.repeat(10_000));
    const { code, message } = (await failure(get())) as FetchFailed;
    expect([code, message]).to.deep.equal(["limit_exceeded", `the answer of ${at} comes in too many pieces`]);
  });
});
