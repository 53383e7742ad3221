/**
 * docs/actions.md and examples/ are correct: every snippet with a result and every example is run, and every global is
 * on the page.
 */
import { expect } from "chai";
import { ethers } from "ethers";
import { execFileSync } from "node:child_process";
import { generateKeyPairSync, sign } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { OP_NAMES } from "../../../protocol/ops";
import { withLimits } from "../../../scripts/action/limitsTable";
import { createLocalRunner, type LocalRun, type LocalRunner } from "../../../scripts/action/localRun";

const ROOT = join(__dirname, "../../..");
const page = readFileSync(join(ROOT, "docs/actions.md"), "utf8");
const SNIPPET = /```js\n((?:(?!```)[\s\S])*)```\n\n```json\n([\s\S]*?)```/g;

/** Equality, where "abc…" stands for any text with that prefix. */
function matches(actual: unknown, expected: unknown): boolean {
  if (typeof expected === "string" && expected.endsWith("…"))
    return typeof actual === "string" && actual.startsWith(expected.slice(0, -1));
  if (typeof expected !== "object" || expected === null) return actual === expected;
  if (typeof actual !== "object" || actual === null || Array.isArray(actual) !== Array.isArray(expected)) return false;
  const [a, b] = [Object.entries(actual), Object.entries(expected)];
  return a.length === b.length && b.every(([key, value]) => matches((actual as Record<string, unknown>)[key], value));
}

describe("docs/actions.md and examples/", function () {
  this.timeout(30_000);
  let runner: LocalRunner;
  let server: Server;
  let origin: string;
  const answers: Record<string, unknown> = {
    "/value": { value: 7 },
    "/a": { price: 100 },
    "/b": { price: 101 },
    "/c": { price: 102 },
    "/wild": { price: 200 },
  };

  before(async () => {
    server = createServer((request, response) => {
      if (request.url === "/rpc") return void answerRpc(request, response);
      const answer = answers[request.url ?? ""];
      response.writeHead(answer ? 200 : 404).end(JSON.stringify(answer ?? {}));
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address() as AddressInfo;
    origin = `http://127.0.0.1:${port}`;
    runner = await createLocalRunner({ allowHosts: [`127.0.0.1:${port}`] });
  });
  after(async () => {
    await runner.close();
    server.close();
  });

  describe("snippets", () => {
    const snippets = [...page.matchAll(SNIPPET)].map(([, code = "", result = ""]) => ({ code, result }));
    for (const { code, result } of snippets) {
      const title =
        code.split("\n").find((line) => line.includes("Actions.") || line.includes("return")) ?? code.slice(0, 60);
      it(title.trim(), async () => {
        const params = JSON.parse(/^\/\/ params: (.*)$/m.exec(code)?.[1] ?? "{}") as Record<string, unknown>;
        const outcome = await runner.run(code, params);
        expect(outcome.error, JSON.stringify(outcome.error)).to.equal(undefined);
        expect(matches(JSON.parse(outcome.response), JSON.parse(result)), outcome.response).to.equal(true);
      });
    }
  });

  it("shows every global in a snippet that is run, and names it", () => {
    const code = [...page.matchAll(SNIPPET)].map(([, snippet]) => snippet).join("\n");
    for (const name of [...OP_NAMES, "setResponse", "showImportDetails"]) expect(code).to.contain(`Actions.${name}(`);
    const globals = [
      ...["ethers", "fetch", "Headers", "Request", "Response", "AbortController", "URL", "URLSearchParams"],
      ...["TextEncoder", "TextDecoder", "atob", "btoa", "structuredClone", "setTimeout", "crypto", "console"],
      "jsParams",
    ];
    for (const name of globals) expect(code).to.match(new RegExp(`\\b${name}\\b`));
  });

  it("states the limits of the code (else: node dist/scripts/action/limitsTable.js)", () => {
    expect(page).to.equal(withLimits(page));
  });

  describe("examples", () => {
    /** `terms`: the constants before the example's text. */
    const run = (name: string, params: Record<string, unknown> = {}, terms: object = {}): Promise<LocalRun> => {
      const given = Object.entries(terms).map(([term, value]) => `const ${term} = ${JSON.stringify(value)};\n`);
      return runner.run(given.join("") + readFileSync(join(ROOT, "examples", name), "utf8"), params);
    };
    const responseOf = async (...asked: Parameters<typeof run>): Promise<Record<string, string>> => {
      const outcome = await run(...asked);
      expect(outcome.error, JSON.stringify(outcome.error)).to.equal(undefined);
      return JSON.parse(outcome.response) as Record<string, string>;
    };
    const approvers = [ethers.Wallet.createRandom(), ethers.Wallet.createRandom()] as const;

    const checks: Record<string, () => Promise<void>> = {
      "hello.js": async () => {
        expect(await responseOf("hello.js", { name: "you" })).to.deep.equal({ greeting: "Hello, you!" });
      },
      "sign-message.js": async () => {
        expect((await responseOf("sign-message.js")).signer).to.equal(runner.pkpId);
      },
      "sign-typed-data.js": async () => {
        expect((await responseOf("sign-typed-data.js")).signer).to.equal(runner.pkpId);
      },
      "sign-transaction.js": async () => {
        const to = ethers.ZeroAddress;
        expect((await responseOf("sign-transaction.js", { to, valueWei: "100" })).from).to.equal(runner.pkpId);
        expect((await run("sign-transaction.js", { to, valueWei: String(10n ** 18n) })).error?.message).to.contain(
          "more than this action signs",
        );
      },
      "encrypt-secret.js": async () => {
        const { ciphertext } = await responseOf("encrypt-secret.js", { secret: "key" });
        const { mac } = await responseOf("encrypt-secret.js", { ciphertext, challenge: "c" });
        expect(mac).to.equal(ethers.computeHmac("sha256", Buffer.from("key"), Buffer.from("c")));
      },
      "gate-on-fetch.js": async () => {
        const SOURCE = `${origin}/value`;
        const open = await responseOf("gate-on-fetch.js", { message: "go" }, { SOURCE, AT_LEAST: 7 });
        expect(ethers.verifyMessage("go", open.signature ?? "")).to.equal(runner.pkpId);
        const chosen = { message: "go", url: SOURCE, atLeast: null };
        expect(await responseOf("gate-on-fetch.js", chosen, { SOURCE, AT_LEAST: 8 })).to.deep.equal({
          signed: false,
          value: 7,
        });
      },
      "price-oracle/oracle.js": async () => {
        const ask = (...paths: string[]) =>
          run("price-oracle/oracle.js", {}, { PAIR: "A/B", QUORUM: 2, SOURCES: paths.map((path) => origin + path) });
        const { report, hash, signature } = JSON.parse((await ask("/a", "/b", "/c")).response) as {
          report: { price: string };
          hash: string;
          signature: string;
        };
        expect(report.price).to.equal("10100000000");
        expect(ethers.recoverAddress(hash, signature)).to.equal(runner.pkpId);
        expect((await ask("/a", "/missing", "/gone")).error?.message).to.equal("only 1 of 3 sources answered");
        expect((await ask("/a", "/b", "/wild")).error?.message).to.contain("the sources disagree");
      },
      "action-identity.js": async () => {
        const { statement, signature, address } = await responseOf("action-identity.js", { statement: "s" });
        expect(ethers.verifyMessage(statement ?? "", signature ?? "")).to.equal(address);
        const { cid } = await run("action-identity.js");
        const elsewhere = await runner.run(
          "async function main({ ipfsId }) { return Actions.getActionWalletAddress({ ipfsId }); }",
          { ipfsId: cid },
        );
        expect(JSON.parse(elsewhere.response)).to.equal(address);
      },
      "threshold.js": async () => {
        const payee = ethers.Wallet.createRandom().address;
        const params = { order: 7, amount: 1_000, payee };
        const text = `order 7: pay 1000 to ${payee}`;
        const approvals = await Promise.all(approvers.map((approver) => approver.signMessage(text)));
        const terms = { APPROVERS: approvers.map(({ address }) => address), NEEDED: 2 };
        const met = await responseOf("threshold.js", { ...params, approvals }, terms);
        expect(ethers.verifyMessage(text, met.signature ?? "")).to.equal(runner.pkpId);
        const chosen = { ...params, approvals: ["0x"], approvers: [], needed: 0 };
        expect(await responseOf("threshold.js", chosen, terms)).to.include({ signed: false });
        // The approvals of one order are good for no other one.
        expect(await responseOf("threshold.js", { ...params, order: 8, approvals }, terms)).to.include({
          signed: false,
        });
        // Nobody has approved: what is signed is the small amount itself, whatever else the caller sends.
        const small = { ...params, message: text, amount: 0, approvals: [] };
        const { signature } = await responseOf("threshold.js", small, { ...terms, NEEDED: 1 });
        expect(ethers.verifyMessage(`order 7: pay 0 to ${payee}`, signature ?? "")).to.equal(runner.pkpId);
        for (const amount of ["0", null, -5, 0.5, [0]])
          expect((await run("threshold.js", { ...small, amount }, terms)).error?.message).to.contain("whole numbers");
      },
      "verify-token.js": async () => {
        const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
        const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
        const claims = { sub: "ann", aud: "us", exp: Math.floor(Date.now() / 1000) + 60 };
        const tokenOf = (claimed: object): string => {
          const head = `${encode({ alg: "ES256" })}.${encode(claimed)}`;
          const tail = sign("sha256", Buffer.from(head), { key: privateKey, dsaEncoding: "ieee-p1363" });
          return `${head}.${tail.toString("base64url")}`;
        };
        const token = tokenOf(claims);
        const terms = { JWK: publicKey.export({ format: "jwk" }), AUDIENCE: "us" };
        const { subject, signature } = await responseOf("verify-token.js", { token }, terms);
        expect(ethers.verifyMessage(`login of ${subject}`, signature ?? "")).to.equal(runner.pkpId);
        const others = [
          { ...terms, AUDIENCE: "them" },
          { ...terms, JWK: generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey.export({ format: "jwk" }) },
        ];
        for (const other of others)
          expect((await run("verify-token.js", { token }, other)).error?.message).to.equal(
            "the token is not acceptable",
          );
        for (const wrong of [{ exp: undefined }, { exp: "never" }, { exp: 1 }, { sub: undefined }, { sub: ["ann"] }])
          expect(
            (await run("verify-token.js", { token: tokenOf({ ...claims, ...wrong }) }, terms)).error?.message,
            JSON.stringify(wrong),
          ).to.equal("the token is not acceptable");
      },
      "pay-invoice.js": async () => {
        const coder = ethers.AbiCoder.defaultAbiCoder();
        const event = (value: bigint) => ({
          trigger: { event: { data: coder.encode(["address", "uint256"], [runner.pkpId, value]) } },
          ...{ nonce: 3, chainId: 1 },
        });
        const { raw } = await responseOf("pay-invoice.js", event(5n));
        expect(ethers.Transaction.from(raw)).to.include({ to: runner.pkpId, value: 5n, from: runner.pkpId, nonce: 3 });
        expect((await run("pay-invoice.js", event(10n ** 18n))).error?.message).to.contain(
          "more than this action pays",
        );
        expect(await responseOf("pay-invoice.js")).to.deep.equal({ paid: false });
      },
      "sign-release.js": async () => {
        const params = { repository: "acme/app", tag: "v1.2.3", sha256: "0".repeat(64) };
        const { message, signature } = await responseOf("sign-release.js", params);
        expect(ethers.verifyMessage(message ?? "", signature ?? "")).to.equal(runner.pkpId);
        expect((await run("sign-release.js", { ...params, tag: "latest" })).error?.message).to.contain("a version");
      },
      "keeper.js": async () => {
        const params = { rpcUrl: `${origin}/rpc`, contract: ethers.ZeroAddress, chainId: 31_337 };
        expect((await run("keeper.js", params)).error?.code).to.equal("threw");
      },
      "read-contract.js": async () => {
        const holder = ethers.ZeroAddress;
        // The caller's own choices of endpoint and token count for nothing.
        const params = { holder, rpcUrl: `${origin}/missing`, token: runner.pkpId };
        const terms = { RPC_URL: `${origin}/rpc`, TOKEN: holder };
        const { statement, signature } = await responseOf("read-contract.js", params, terms);
        expect(statement).to.equal(`${holder} holds 42 TOK at block 9`);
        expect(ethers.verifyMessage(statement ?? "", signature ?? "")).to.equal(runner.pkpId);
      },
    };
    for (const [name, check] of Object.entries(checks)) it(`${name} does what it says`, check);

    it("exist in the folder and on the page", () => {
      const files = [
        ...readdirSync(join(ROOT, "examples")).filter((name) => name.endsWith(".js")),
        "price-oracle/oracle.js",
      ];
      const elsewhere = readFileSync(join(__dirname, "curveExamples.test.ts"), "utf8");
      expect([...Object.keys(checks), ...files.filter((name) => elsewhere.includes(`"${name}"`))].sort()).to.deep.equal(
        files.sort(),
      );
      for (const name of files) expect(page).to.contain(`(../examples/${name})`);
    });
  });

  describe("npm run action", () => {
    const action = (...args: string[]) => {
      try {
        return {
          code: 0,
          output: execFileSync(process.execPath, [join(ROOT, "dist/scripts/action.js"), ...args], {
            encoding: "utf8",
            cwd: ROOT,
            stdio: ["ignore", "pipe", "pipe"],
          }),
        };
      } catch (error) {
        const { status, stdout, stderr } = error as { status: number; stdout: string; stderr: string };
        return { code: status, output: stdout + stderr };
      }
    };

    it("prints response, logs, CID, PKP and usage", () => {
      const { code, output } = action("examples/hello.js", "--params", '{"name":"you"}');
      expect(code).to.equal(0);
      for (const part of [`"greeting": "Hello, you!"`, "greeting you", "CID    Qm", "PKP    0x", "usage  "])
        expect(output).to.contain(part);
    });

    it("exits with 1 when the action fails and with 2 for invalid arguments", () => {
      expect(action("examples/sign-transaction.js", "--json")).to.include({ code: 1 });
      for (const args of [
        [],
        ["missing.js"],
        ["examples/hello.js", "--params", "[1]"],
        ["examples/hello.js", "--params", "{"],
        ["examples/hello.js", "--timeout", "0"],
      ]) {
        const { code, output } = action(...args);
        expect(code, args.join(" ")).to.equal(2);
        expect(output).to.contain("npm run action -- <file.js>");
      }
    });

    it("keeps its keys for a seed", () => {
      const once = () =>
        (JSON.parse(action("examples/hello.js", "--seed", "s", "--json").output) as { pkp_id: string }).pkp_id;
      expect(once()).to.equal(once());
    });
  });
});

/** An ERC-20 that answers 42 to every call. */
function answerRpc(request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const calls = [JSON.parse(Buffer.concat(chunks).toString()) as unknown].flat() as {
      id: number;
      method: string;
      params: [{ data?: string }];
    }[];
    const coder = ethers.AbiCoder.defaultAbiCoder();
    const results = calls.map(({ id, method, params }) => {
      const call = params[0]?.data?.startsWith("0x70a08231")
        ? coder.encode(["uint256"], [42])
        : coder.encode(["string"], ["TOK"]);
      const result = { eth_chainId: "0x1", eth_blockNumber: "0x9", eth_call: call }[method];
      return { jsonrpc: "2.0", id, result };
    });
    response.end(JSON.stringify(results.length === 1 ? results[0] : results));
  });
}
