/** What the service fetches for itself: code by CID, modules, key sets; from test servers that return wrong data. */
import { expect } from "chai";
import { MemoryBlockstore } from "blockstore-core";
import { UnixFS } from "ipfs-unixfs";
import { importer } from "ipfs-unixfs-importer";
import { fixedSize } from "ipfs-unixfs-importer/chunker";
import { balanced } from "ipfs-unixfs-importer/layout";
import { base58btc } from "multiformats/bases/base58";
import { CID } from "multiformats/cid";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createFetcher, type FetcherOptions } from "../../../executor/fetcher/client";
import { ownRules, Sources } from "../../../executor/fetcher/sources";
import { FetchFailed, type Fetcher } from "../../../executor/fetcher/types";
import { cidOfCode } from "../../../protocol/cid";
import { childrenOf } from "../../support/children";
import { silent } from "../../support/sandbox";
import { MIB } from "../../../protocol/limits";

const servers: Server[] = [];

async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, "127.0.0.1");
  servers.push(server);
  await new Promise((resolve) => server.once("listening", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

type Own = Pick<Fetcher, "fetchCode" | "fetchModule" | "fetchJwks">;

/** What the fetcher process does with its configuration, in this process. */
function fetcherWith(options: Omit<FetcherOptions, "logger">): Own {
  const endpoints = { gateways: [], jwksUrls: [], ...options };
  const sources = new Sources(endpoints, ownRules(endpoints));
  return {
    fetchCode: (cid, maxBytes) => sources.code(cid, maxBytes),
    fetchModule: (url, maxBytes) => sources.module(url, maxBytes),
    fetchJwks: (url) => sources.jwks(url),
  };
}

async function codeOf(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).to.be.instanceOf(FetchFailed);
  return (error as FetchFailed).code;
}

/** The blocks of a file as `ipfs add` creates them. */
async function blocksOf(content: Uint8Array): Promise<{ cid: string; get(cid: string): Promise<Uint8Array> }> {
  const store = new MemoryBlockstore();
  const options = {
    cidVersion: 0 as const,
    rawLeaves: false,
    chunker: fixedSize({ chunkSize: 262_144 }),
    layout: balanced({ maxChildrenPerNode: 174 }),
  };
  let root = "";
  for await (const entry of importer([{ content }], store, options)) root = entry.cid.toString();
  const get = async (cid: string) => {
    const parts: Uint8Array[] = [];
    const block = (await store.get(CID.parse(cid))) as unknown;
    if (block instanceof Uint8Array) return block;
    for await (const part of block as AsyncIterable<Uint8Array>) parts.push(part);
    return Buffer.concat(parts);
  };
  return { cid: root, get };
}

const file = (bytes: number): Buffer => Buffer.alloc(bytes, "async function main() { return 1; }\n");

describe("code by CID", function () {
  this.timeout(20_000);
  after(() => {
    for (const server of servers) (server.closeAllConnections(), server.close());
  });

  for (const bytes of [0, 5, 262_143, 262_144, 262_145, 3 * 262_144]) {
    it(`a file of ${bytes} bytes is fetched block by block from a trustless gateway`, async () => {
      const content = file(bytes);
      const { cid, get } = await blocksOf(content);
      const asked: string[] = [];
      const gateway = await serve(async (request, response) => {
        asked.push(request.headers.accept ?? "");
        const name = /^\/ipfs\/(\w+)\?format=raw$/.exec(request.url ?? "")?.[1] ?? "";
        response.end(await get(name));
      });
      const fetcher = fetcherWith({ gateways: [gateway] });
      expect((await fetcher.fetchCode(cid, MIB)).equals(content)).to.equal(true);
      expect(new Set(asked)).to.deep.equal(new Set(["application/vnd.ipld.raw"]));
    });
  }

  it("a gateway that serves only whole files is supported", async () => {
    const content = file(400_000);
    const gateway = await serve((_, response) => response.end(content));
    const fetcher = fetcherWith({ gateways: [`${gateway}/`] });
    expect((await fetcher.fetchCode(await cidOfCode(content), MIB)).equals(content)).to.equal(true);
  });

  it("a gateway that returns wrong data is skipped, whatever is wrong", async () => {
    const content = file(300_000);
    const { cid, get } = await blocksOf(content);
    const other = await blocksOf(file(300_001));
    const lies: RequestListener[] = [
      (_, response) => response.end("other code"),
      async (_, response) => response.end(await other.get(other.cid)),
      // The root block is correct, the leaves are not.
      async (request, response) => response.end(request.url?.includes(cid) ? await get(cid) : "leaf"),
      (_, response) => response.writeHead(500).end(),
      (_, response) => response.writeHead(302, { location: "http://169.254.169.254/" }).end(),
      (_, response) => response.destroy(),
      (_, response) => response.end(""),
    ];
    const truth = await serve((_, response) => response.end(content));
    for (const lie of lies) {
      const liar = await serve(lie);
      const alone = fetcherWith({ gateways: [liar] });
      expect(await codeOf(alone.fetchCode(cid, MIB))).to.be.oneOf(["failed", "refused"]);
      const both = fetcherWith({ gateways: [liar, truth] });
      expect((await both.fetchCode(cid, MIB)).equals(content)).to.equal(true);
    }
  });

  it("what every source says it has not is missing, and what one that is away may have is not", async () => {
    const cid = await cidOfCode(file(10));
    const without = await serve((_, response) => response.writeHead(404).end());
    const away = await serve((_, response) => response.writeHead(503).end());
    const found = (gateways: string[]): Promise<string> => codeOf(fetcherWith({ gateways }).fetchCode(cid, MIB));
    expect(await found([without, without])).to.equal("not_found");
    const nobody = await serve((_, response) => response.writeHead(504).end());
    expect(await found([nobody, without])).to.equal("not_found");
    const kuboRpcUrl = await serve((_, response) =>
      response.writeHead(500).end('{"Message":"ipld: could not find Qm"}'),
    );
    expect(await codeOf(fetcherWith({ gateways: [without], kuboRpcUrl }).fetchCode(cid, MIB))).to.equal("not_found");
    expect([await found([away, without]), await found([without, away])]).to.deep.equal(["failed", "failed"]);
  });

  /** What fetching a block ends with. */
  async function endOf(block: Buffer): Promise<string> {
    const hash = createHash("sha256").update(block).digest();
    const cid = base58btc.encode(Buffer.concat([Buffer.from([0x12, 0x20]), hash])).slice(1);
    const gateway = await serve((_, response) => response.end(block));
    return codeOf(fetcherWith({ gateways: [gateway] }).fetchCode(cid, 16 * MIB));
  }

  /** Each link is an identity CID of four bytes. */
  const shortLinks = (count: number): Buffer =>
    Buffer.concat(new Array(count).fill(Buffer.from("12060a0401550000", "hex")));

  it("a block of very many short links is refused before any of them is looked at", async () => {
    expect(await endOf(shortLinks(260_000))).to.equal("too_large");
  });

  it("a block's links are all counted, however their keys are written", async () => {
    // A key of two bytes; who takes it for one of one byte finds a field in its CID that seems to fill the block.
    const misleading = Buffer.from("9200110a0f0155000b000000000000ffffffff7f", "hex");
    const original = CID.decode.bind(CID);
    let decoded = 0;
    CID.decode = (...given) => (decoded++, original(...given));
    try {
      expect(await endOf(Buffer.concat([misleading, shortLinks(10_000)]))).to.equal("not_found");
    } finally {
      CID.decode = original;
    }
    expect(decoded).to.be.at.most(1_024);
  });

  it("a block of very many sizes of others is refused before any of them is read", async () => {
    const sizes = Buffer.alloc(2 * MIB - 16, Buffer.from("2000", "hex"));
    const data = Buffer.concat([Buffer.from("0802", "hex"), sizes]);
    const length = Buffer.from([128 | (data.length & 127), 128 | ((data.length >> 7) & 127), data.length >> 14]);
    const original = UnixFS.unmarshal.bind(UnixFS);
    let read = 0;
    UnixFS.unmarshal = (bytes) => {
      const unmarshalled = original(bytes);
      read += unmarshalled.blockSizes.length;
      return unmarshalled;
    };
    try {
      const end = await endOf(Buffer.concat([Buffer.from([0x0a]), length, data]));
      expect([end, read]).to.deep.equal(["too_large", 0]);
    } finally {
      UnixFS.unmarshal = original;
    }
  });

  it("a Kubo RPC is asked by POST, and verified like a gateway", async () => {
    const content = file(1_000);
    const cid = await cidOfCode(content);
    const asked: string[] = [];
    const kubo = await serve(
      (request, response) => (asked.push(`${request.method} ${request.url}`), response.end(content)),
    );
    const fetcher = fetcherWith({ kuboRpcUrl: kubo });
    expect((await fetcher.fetchCode(cid, MIB)).equals(content)).to.equal(true);
    expect(asked).to.deep.equal([`POST /api/v0/cat?arg=${cid}`]);
    expect(await codeOf(fetcher.fetchCode(await cidOfCode("else"), MIB))).to.equal("failed");
  });

  it("code above the size limit is distinguished from missing code", async () => {
    const content = file(1_001);
    const gateway = await serve((_, response) => response.end(content));
    const fetcher = fetcherWith({ gateways: [gateway] });
    const cid = await cidOfCode(content);
    expect(await codeOf(fetcher.fetchCode(cid, 1_000))).to.equal("too_large");
    expect((await fetcher.fetchCode(cid, 1_001)).length).to.equal(1_001);
  });

  it("without a source there is none, and the message says so", async () => {
    const fetcher = fetcherWith({});
    const error = (await fetcher
      .fetchCode(await cidOfCode("x"), MIB)
      .catch((reason: unknown) => reason)) as FetchFailed;
    expect(error).to.include({ code: "not_found", message: "no source for code by CID is configured" });
  });

  it("key sets are fetched from configured addresses only", async () => {
    const issuer = await serve((_, response) => response.end('{"keys":[]}'));
    const fetcher = fetcherWith({ jwksUrls: [`${issuer}/jwks`] });
    expect(await fetcher.fetchJwks(`${issuer}/jwks`)).to.equal('{"keys":[]}');
    expect(await codeOf(fetcher.fetchJwks(`${issuer}/other`))).to.equal("refused");
  });

  it("modules are fetched below the configured origin only, within their size", async () => {
    const origin = await serve((_, response) => response.end("export default 1;"));
    const fetcher = fetcherWith({ moduleOrigin: `${origin}/npm/` });
    expect((await fetcher.fetchModule(`${origin}/npm/a@1.0.0/+esm`, 17)).toString()).to.equal("export default 1;");
    expect(await codeOf(fetcher.fetchModule(`${origin}/npm/a@1.0.0/+esm`, 16))).to.equal("too_large");
    expect(await codeOf(fetcher.fetchModule(`${origin}/other`, 100))).to.equal("refused");
  });
});

describe("the fetcher process", () => {
  it("serves code, modules and key sets, and refuses as its parts do", async () => {
    const server = await serve((request, response) => response.end(request.url === "/npm/m" ? "module" : "code"));
    const fetcher = await createFetcher({
      logger: silent,
      gateways: [server],
      moduleOrigin: `${server}/npm/`,
      jwksUrls: [`${server}/jwks`],
    });
    expect((await fetcher.fetchCode(await cidOfCode("code"), 10)).toString()).to.equal("code");
    expect((await fetcher.fetchModule(`${server}/npm/m`, 10)).toString()).to.equal("module");
    expect(await fetcher.fetchJwks(`${server}/jwks`)).to.equal("code");
    expect(await codeOf(fetcher.fetchCode(await cidOfCode("other"), 10))).to.equal("failed");
    await fetcher.close();
    expect(await codeOf(fetcher.fetchJwks(`${server}/jwks`))).to.equal("unavailable");
    servers.at(-1)?.close();
  });

  it("ends the fetch of a module that is not wanted any more, and its connection", async () => {
    const hanging = createServer(() => undefined).listen(0, "127.0.0.1");
    await once(hanging, "listening");
    const origin = `http://127.0.0.1:${(hanging.address() as AddressInfo).port}/npm/`;
    const fetcher = await createFetcher({ logger: silent, moduleOrigin: origin });
    const stop = new AbortController();
    const requested = once(hanging, "request");
    const fetching = codeOf(fetcher.fetchModule(`${origin}m`, 10, { signal: stop.signal }));
    const [{ socket }] = (await requested) as [IncomingMessage];
    const closed = once(socket, "close");
    stop.abort();
    expect(await fetching).to.equal("failed");
    await closed;
    await fetcher.close();
    hanging.close();
  });

  it("is restarted when it exits, and answers open requests with unavailable", async () => {
    const hanging = createServer(() => undefined).listen(0, "127.0.0.1");
    await new Promise((resolve) => hanging.once("listening", resolve));
    const { port } = hanging.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}/`;
    const fetcher = await createFetcher({ logger: silent, allowHosts: [`127.0.0.1:${port}`] });
    const request = { url, method: "GET", headers: [], redirect: "follow" as const, timeoutMs: 5_000, maxBytes: 10 };
    const open = codeOf(fetcher.fetchGuest(request, Buffer.alloc(0)));
    await new Promise((resolve) => hanging.once("request", resolve));
    const pids = childrenOf(process.pid, "fetcher/main.js").map(({ pid }) => pid);
    process.kill(Math.max(...pids), "SIGKILL");
    expect(await open).to.equal("unavailable");
    let after = "unavailable";
    for (let i = 0; i < 50 && after === "unavailable"; i++) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      after = await codeOf(fetcher.fetchGuest({ ...request, timeoutMs: 100 }, Buffer.alloc(0)));
    }
    expect(after).to.equal("timed_out");
    await fetcher.close();
    hanging.closeAllConnections();
    hanging.close();
  }).timeout(15_000);
});
