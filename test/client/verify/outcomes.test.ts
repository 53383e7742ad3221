/**
 * One verdict and one exit code, seen through the command line: only a full set of passed steps of a real TEE is
 * success.
 */
import { spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import { verifyService, STEP_IDS } from "../../../client/verify";
import { compileCache } from "../../../scripts/dev/processes";
import { startAttestedService, type AttestedService } from "../../support/attestedService";

const PROGRAM = join(__dirname, "../../../dist/scripts/verify.js");

async function run(...args: string[]): Promise<{ code: number | null; out: string; err: string }> {
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    env: { PATH: process.env.PATH, ...compileCache() },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let out = "";
  let err = "";
  child.stdout.on("data", (chunk) => (out += String(chunk)));
  child.stderr.on("data", (chunk) => (err += String(chunk)));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, out, err };
}

describe("the verdict of npm run verify", () => {
  let service: AttestedService;
  before(async () => {
    service = await startAttestedService({ says: "simulated", secure: false });
  });
  afterEach(() => service.honest());
  after(() => service.stop());

  it("is 2 and SIMULATED for a simulated service, with every step that needs no trusted root passed", async () => {
    const { code, out } = await run(service.baseUrl);
    expect(code, out).to.equal(2);
    expect(out).to.contain("SIMULATED");
    expect(out).to.match(/– not checked\s+Quote signature and TCB\s+SIMULATED/);
    expect(out).to.match(/✓ passed\s+Event log replays/);
    expect(out).to.match(/– not checked\s+TLS certificate of this connection\s+plain HTTP/);
  });

  it("stays 2 when a custom root vouches for simulated quotes", async () => {
    const { collateral, rootDer } = service.agent.platform;
    const report = await verifyService(service.baseUrl, { collateral, trustedRoot: rootDer });
    expect(report.steps.find(({ id }) => id === "signature")?.status).to.equal("passed");
    expect(report.outcome).to.equal("simulated");
  });

  it("is 1 when a simulated service is tampered with, and still says SIMULATED", async () => {
    service.tamper("/info", (body) => body.replace('"rpc.example"', '"rpc.exampl3"'));
    const { code, out } = await run(service.baseUrl);
    expect(code, out).to.equal(1);
    expect(out).to.match(/✗ FAILED\s+Config document/);
    expect(out).to.contain("SIMULATED");
  });

  it("is 1 when the service says it has no TEE", async () => {
    service.tamper("/info", (body) => body.replace('"tee":"simulated"', '"tee":"none"'));
    const { code, out } = await run(service.baseUrl);
    expect(code, out).to.equal(1);
    expect(out).to.contain("without a TEE");
  });

  it("is not success for a service that claims dstack with simulated quotes, with or without collateral", async () => {
    const liar = await startAttestedService({ says: "dstack", secure: false });
    try {
      const collateralFile = join(liar.evidenceDir, "collateral.json");
      await writeFile(collateralFile, JSON.stringify(liar.agent.platform.collateral));
      expect((await run(liar.baseUrl, "--collateral", collateralFile)).code).to.equal(1);
      const without = await run(liar.baseUrl, "--pccs", liar.baseUrl);
      expect(without.code, without.out).to.equal(3);
      expect(without.out).to.contain("NOT VERIFIED");
    } finally {
      await liar.stop();
    }
  });

  it("is 3 when the service does not answer, and no step claims to have passed", async () => {
    const { code, out } = await run("http://127.0.0.1:1");
    expect(code, out).to.equal(3);
    expect(out).not.to.contain("✓");
  });

  it("is 4 with the usage for invalid arguments", async () => {
    for (const args of [
      [],
      ["ftp://x"],
      ["http://a", "http://b"],
      ["http://a", "--nonsense"],
      ["http://a", "--collateral", "/nonexistent"],
    ]) {
      const { code, err } = await run(...args);
      expect(code, args.join(" ")).to.equal(4);
      expect(err).to.contain("npm run verify");
    }
  });

  it("gives the same report as JSON, with options before the service as behind it", async () => {
    const { code, out } = await run("--accept-tcb", "SWHardeningNeeded", service.baseUrl, "--json");
    expect(code).to.equal(2);
    expect(JSON.parse(out)).to.include({ tee: "simulated", outcome: "simulated", exitCode: 2 });
  });

  it("prints no control characters of the service to the terminal", async () => {
    service.tamper("/evidences/acme-account.json", () => JSON.stringify({ uri: "\u001b[2J\u001b[31mgotcha" }));
    service.tamper("/info", (body) => body.replace('"tee":"simulated"', '"tee":"\\u001b[2Jdstack"'));
    const { out } = await run(service.baseUrl);
    expect(out).not.to.contain(String.fromCharCode(27));
  });

  it("is a report, not a crash, when the service sends deeply nested documents", async () => {
    const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
    for (const path of ["/info", "/attestation", "/core/v1/limits", "/evidences/quote.json"]) {
      service.tamper(path, (body) =>
        body.replace(/^\{/, `{"deep":${deep},`).replace('"config":{', `"config":{"deep":${deep},`),
      );
      const report = await verifyService(service.baseUrl);
      expect(report.exitCode, path).to.be.oneOf([1, 2]);
      expect(report.steps).to.have.length(STEP_IDS.length);
      service.honest();
    }
  });

  it("ends within its time-outs when the service trickles or floods", async () => {
    const flood = createServer((_request, response) => {
      response.writeHead(200);
      const timer = setInterval(() => response.write(Buffer.alloc(1024 * 1024, 0x61)), 5);
      response.on("close", () => clearInterval(timer));
    }).listen(0, "127.0.0.1");
    await once(flood, "listening");
    const trickle = createServer((_request, response) => {
      response.writeHead(200);
      const timer = setInterval(() => response.write("a"), 50);
      response.on("close", () => clearInterval(timer));
    }).listen(0, "127.0.0.1");
    await once(trickle, "listening");
    try {
      for (const server of [flood, trickle]) {
        const report = await verifyService(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, {
          timeoutMs: 1_000,
        });
        expect(report.steps.some(({ status }) => status === "passed")).to.equal(false);
        expect(report.exitCode).to.equal(3);
      }
    } finally {
      for (const server of [flood, trickle]) {
        server.close();
        server.closeAllConnections();
      }
    }
  });
});
