/** The root key step against the real contract on a real node. */
import { expect } from "chai";
import { createServer, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { id } from "ethers";
import { verifyService, type Step } from "../../../client/verify";
import { endpointsFor, ethCall } from "../../../client/verify/rpc";
import {
  ROOT_STATEMENT,
  giveContract,
  startAttestedService,
  type AttestedService,
} from "../../support/attestedService";
import { startTestChain, type TestChain } from "../../support/chain";
import { editJson } from "../../support/verification";

interface Document {
  config: { root: Record<string, string>; statement_key: string };
  root_commitment: string;
}

describe("the root key step", function () {
  this.timeout(60_000);
  let chain: TestChain;
  let service: AttestedService;
  before(async () => {
    chain = await startTestChain();
    service = await startAttestedService({ says: "simulated", secure: false });
    await giveContract(chain);
  });
  afterEach(() => service.honest());
  after(async () => {
    await service?.stop();
    await chain?.stop();
  });
  const step = async (rpcUrl: string | undefined = chain.rpcUrl): Promise<Step | undefined> => {
    const { steps } = await verifyService(service.baseUrl, rpcUrl === "" ? {} : { rpcUrl });
    return steps.find(({ id: name }) => name === "rootKey");
  };

  it("passes when the contract is bound to the root that vouches for the statement key", async () => {
    const found = await step();
    expect(found?.status, found?.detail).to.equal("passed");
    expect(found?.detail).to.contain(ROOT_STATEMENT.commitment);
  });

  it("is not checked without an endpoint of the contract's chain", async () => {
    expect(await step("")).to.include({ status: "not_checked" });
    expect(await step("http://127.0.0.1:1")).to.include({ status: "not_checked" });
  });

  it("fails when the contract is bound to another root", async () => {
    await giveContract(chain, { rootCommitment: id("another root") });
    const found = await step();
    expect([found?.status, found?.detail]).to.satisfy(
      ([status, detail]: [string, string]) => status === "failed" && detail.includes(id("another root")),
      found?.detail,
    );
    await giveContract(chain);
  });

  it("fails when /info states another commitment; is not checked when the document is not attested", async () => {
    service.tamper(
      "/info",
      editJson((info: Document) => void (info.root_commitment = id("another root"))),
    );
    expect(await step()).to.include({ status: "failed", detail: "root_commitment of /info is not the attested one" });
    service.honest();
    service.tamper(
      "/info",
      editJson((info: Document) => void (info.config.root["commitment"] = id("another root"))),
    );
    expect(await step()).to.include({ status: "not_checked" });
  });
});

describe("the verifier's RPC endpoints", () => {
  const servers: Server[] = [];
  after(() => servers.forEach((server) => server.close()));
  let asked: number[] = [];
  beforeEach(() => (asked = []));

  /** Answers the calls of one endpoint in turn, the last one again and again. */
  const endpoint = async (...answers: (string | number)[]): Promise<string> => {
    const place = asked.push(0) - 1;
    const server = createServer((_request, response) => {
      const answer = answers[Math.min(asked[place] ?? 0, answers.length - 1)];
      asked[place] = (asked[place] ?? 0) + 1;
      if (typeof answer === "number") response.writeHead(answer, { "retry-after": "0" }).end("slow down");
      else response.end(JSON.stringify({ jsonrpc: "2.0", id: 1, result: answer }));
    }).listen(0, "127.0.0.1");
    servers.push(server);
    await once(server, "listening");
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };
  const read = (urls: readonly string[], agreeing: number): Promise<string> =>
    ethCall({ urls, agreeing, timeoutMs: 2_000 }, { chain: "the chain", to: "0x", data: "0x" }).catch(
      (error: unknown) => (error as Error).message,
    );

  it("of the user: the next one when one throttles, and again after a pause when all do", async () => {
    expect(await read([await endpoint(429), await endpoint("0x01")], 1)).to.equal("0x01");
    asked = [];
    expect(await read([await endpoint(429, 429, "0x02"), await endpoint(500)], 1)).to.equal("0x02");
    expect(asked).to.deep.equal([3, 2]);
  });

  it("of the public: two must agree, whatever a third one says", async () => {
    expect(await read([await endpoint("0x66"), await endpoint("0x01"), await endpoint("0x01")], 2)).to.equal("0x01");
    expect(await read([await endpoint("0x66"), await endpoint("0x01")], 2)).to.match(/contradict each other/);
    expect(await read([await endpoint("0x01")], 2)).to.match(/2 RPC endpoints must agree/);
  });

  it("are public ones for known chains only, and by different operators", () => {
    expect(endpointsFor([], 31_337, 1)).to.equal(undefined);
    const { urls = [], agreeing } = endpointsFor([], 8453, 1) ?? {};
    expect([new Set(urls.map((url) => new URL(url).host.split(".").slice(-2).join("."))).size, agreeing]).to.deep.equal(
      [urls.length, 2],
    );
  });
});
