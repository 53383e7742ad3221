/** The transparency routes behind the relayer's real middleware, and an evidence folder without path traversal. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import fc from "fast-check";
import { KeywrightError } from "../../../protocol/errors";
import { createApp, type AppOptions } from "../../../relayer/app";
import { EvidenceFolder, MAX_EVIDENCE_BYTES } from "../../../relayer/site/evidences";
import type { Executor } from "../../../relayer/executor/client";
import { RequestLimits } from "../../../relayer/middleware/rateLimits";
import { RATE_LIMITS } from "../../../protocol/limits";
import { createLogger } from "../../../protocol/log";
import { transparencyRoutes } from "../../../relayer/routes/transparency";
import { count, SEED } from "../../support/counts";

interface Answer {
  status: number;
  type: string;
  body: string;
}

/** Sends the path exactly as written: `fetch` would normalise it. */
function get(port: number, path: string, method = "GET", headers = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, path, method, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          type: response.headers["content-type"] ?? "",
          body: Buffer.concat(chunks).toString("utf8"),
        }),
      );
    });
    sent.on("error", reject).end();
  });
}

type Calls = Partial<Record<"info" | "attestation", (request: { nonce?: string }) => Promise<unknown>>>;
const QUOTE = { quote: "04", event_log: "[]", vm_config: "{}", report_data: "00" };
const ROOT_COMMITMENT = `0x${"c0".repeat(32)}`;
const INFO = {
  tee: "dstack",
  dstack: { app_id: "aa", compose_hash: "bb", tcb_info: { app_compose: "{}" }, tee: "forged", config: "forged" },
  config: { version: 1 },
  sandbox: { level: "full", missing: [] },
  rootCommitment: ROOT_COMMITMENT,
};

async function serveRoutes(
  calls: Calls,
  folder: EvidenceFolder | undefined,
  trustedProxyHops = 0,
): Promise<{ port: number; server: Server }> {
  const executor = {
    call: (name: "info" | "attestation", input: object) =>
      calls[name]?.(input) ?? Promise.reject(new KeywrightError("executor_unavailable", "not here")),
  } as unknown as Executor;
  const options = {
    handlers: transparencyRoutes({ executor, evidences: folder }),
    authentication: {
      isFamiliar: () => true,
      identify: () => ({ remembered: undefined, caller: () => Promise.resolve(undefined) }),
    },
    limits: new RequestLimits(RATE_LIMITS.development),
    log: createLogger("silent", "relayer"),
    serviceName: "Keywright",
    addressHashKey: "test",
    trustedProxyHops,
    onAnswered: () => undefined,
  } as unknown as AppOptions;
  const server = createApp(options).listen(0, "127.0.0.1");
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port, server };
}

describe("transparency routes", () => {
  const directory = mkdtempSync(join(tmpdir(), "evidences-"));
  const evidenceDir = join(directory, "evidences");
  const asked: (string | undefined)[] = [];
  let port: number;
  let server: Server;

  before(async () => {
    mkdirSync(evidenceDir);
    writeFileSync(join(directory, "outside.txt"), "OUTSIDE");
    writeFileSync(join(evidenceDir, "cert-keys.example.pem"), "PEM");
    writeFileSync(join(evidenceDir, "sha256sum.txt"), "SUMS");
    writeFileSync(join(evidenceDir, "quote.json"), "{}");
    writeFileSync(join(evidenceDir, "other.bin"), Buffer.from([0, 255]));
    writeFileSync(join(evidenceDir, ".hidden"), "HIDDEN");
    writeFileSync(join(evidenceDir, "large.txt"), Buffer.alloc(MAX_EVIDENCE_BYTES + 1));
    writeFileSync(join(evidenceDir, "limit.txt"), Buffer.alloc(MAX_EVIDENCE_BYTES, 0x61));
    symlinkSync("../outside.txt", join(evidenceDir, "link.txt"));
    symlinkSync(directory, join(evidenceDir, "way-out"));
    symlinkSync("quote.json", join(evidenceDir, "inner-link.json"));
    mkdirSync(join(evidenceDir, "folder"));
    execFileSync("mkfifo", [join(evidenceDir, "pipe.txt")]);
    linkSync(join(evidenceDir, "quote.json"), join(evidenceDir, "same.json"));
    const attestation = async ({ nonce }: { nonce?: string }): Promise<unknown> => {
      asked.push(nonce);
      return QUOTE;
    };
    ({ port, server } = await serveRoutes({ info: async () => INFO, attestation }, new EvidenceFolder(evidenceDir)));
  });
  after(() => {
    server.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it(
    "/info is dstack's object with the service's mode, config document and sandbox level, " +
      "which no member of it can override",
    async () => {
      const { status, type, body } = await get(port, "/info");
      expect(status).to.equal(200);
      expect(type).to.contain("application/json");
      expect(JSON.parse(body)).to.deep.equal({
        ...INFO.dstack,
        tee: "dstack",
        config: { version: 1 },
        sandbox: { level: "full", missing: [] },
        root_commitment: ROOT_COMMITMENT,
      });
    },
  );

  it("/info without a TEE has the mode and none of dstack's fields", async () => {
    const none = await serveRoutes(
      {
        info: async () => ({
          ...{ tee: "none", config: {}, sandbox: { level: "none", missing: ["all"] } },
          rootCommitment: ROOT_COMMITMENT,
        }),
      },
      undefined,
    );
    expect(JSON.parse((await get(none.port, "/info")).body)).to.deep.equal({
      tee: "none",
      config: {},
      sandbox: { level: "none", missing: ["all"] },
      root_commitment: ROOT_COMMITMENT,
    });
    none.server.close();
  });

  it("/attestation passes on a nonce of 16 to 32 bytes in lower case, or none, and refuses any other", async () => {
    asked.length = 0;
    for (const nonce of ["ab".repeat(16), "AB".repeat(32)])
      expect((await get(port, `/attestation?nonce=${nonce}`)).status).to.equal(200);
    expect((await get(port, "/attestation")).status).to.equal(200);
    expect(asked).to.deep.equal(["ab".repeat(16), "ab".repeat(32), undefined]);
    for (const nonce of ["", "ab", "ab".repeat(15), "ab".repeat(33), `${"ab".repeat(16)}a`, "zz".repeat(16)]) {
      expect((await get(port, `/attestation?nonce=${nonce}`)).status, nonce).to.equal(400);
    }
    expect((await get(port, `/attestation?nonce=${"ab".repeat(16)}&nonce=${"cd".repeat(16)}`)).status).to.equal(422);
    expect(asked).to.have.length(3);
  });

  it("/attestation asks for one quote with a nonce at a time, so that others can use the guest agent", async () => {
    let [under, most] = [0, 0];
    const slow = await serveRoutes(
      {
        attestation: async ({ nonce }) => {
          if (nonce !== undefined) most = Math.max(most, ++under);
          await sleep(5);
          if (nonce !== undefined) under--;
          return QUOTE;
        },
      },
      undefined,
    );
    const crowd = Array.from({ length: 50 }, () => get(slow.port, `/attestation?nonce=${"ab".repeat(16)}`));
    const without = get(slow.port, "/attestation");
    const statuses = (await Promise.all(crowd)).map(({ status }) => status);
    expect((await without).status).to.equal(200);
    expect(most).to.equal(1);
    expect(new Set(statuses)).to.deep.equal(new Set([200, 503]));
    expect(statuses.filter((status) => status === 200).length).to.be.at.least(17);
    slow.server.close();
  });

  it("/attestation keeps nobody of another network behind many addresses of one", async () => {
    const goOn = Promise.withResolvers<undefined>();
    const held = await serveRoutes({ attestation: () => goOn.promise.then(() => sleep(5, QUOTE)) }, undefined, 1);
    const askFrom = (address: string): Promise<number> =>
      get(held.port, `/attestation?nonce=${"ab".repeat(16)}`, "GET", { "x-forwarded-for": address }).then(
        ({ status }) => status,
      );
    const many = 300;
    let refused = 0;
    const crowd = Array.from({ length: many }, async (_, i) => {
      if ((await askFrom(`2001:db8:0:${i.toString(16)}::1`)) === 503) refused++;
    });
    // One is under way, and at most twice as many as may wait are waiting.
    const under = 1 + 2 * 16;
    for (let waited = 0; refused < many - under && waited < 100; waited++) await sleep(50);
    expect(refused).to.be.at.least(many - under);
    const other = askFrom("203.0.113.7");
    goOn.resolve(undefined);
    expect(await other).to.equal(200);
    await Promise.all(crowd);
    // A network that had a quote is not behind every further address of one that has many.
    let [at, isOver] = [many, false];
    const flood = Array.from({ length: 16 }, async () => {
      while (!isOver) await askFrom(`2001:db8:0:${(at++).toString(16)}::1`);
    });
    for (let time = 0; time < 3; time++) {
      const before = at;
      expect(await askFrom("203.0.113.7")).to.equal(200);
      expect(at - before).to.be.below(64);
    }
    isOver = true;
    await Promise.all(flood);
    held.server.close();
  });

  it("/evidences/ lists the regular files of the folder only", async () => {
    const { status, type, body } = await get(port, "/evidences/");
    expect(status).to.equal(200);
    expect(type).to.contain("text/html");
    const names = [...body.matchAll(/href="([^"]+)"/g)].map(([, name]) => name);
    expect(names).to.deep.equal([
      "cert-keys.example.pem",
      "limit.txt",
      "other.bin",
      "quote.json",
      "same.json",
      "sha256sum.txt",
    ]);
  });

  it("gives each file its type", async () => {
    const types = {
      "cert-keys.example.pem": "application/x-pem-file",
      "quote.json": "application/json; charset=utf-8",
      "sha256sum.txt": "text/plain; charset=utf-8",
      "other.bin": "application/octet-stream",
    };
    for (const [name, type] of Object.entries(types))
      expect(await get(port, `/evidences/${name}`), name).to.include({ status: 200, type });
    expect((await get(port, "/evidences/limit.txt")).body).to.have.length(MAX_EVIDENCE_BYTES);
  });

  it("answers 404 to anything but a regular file of the folder; follows no links, never blocks", async () => {
    for (const name of ["missing.txt", "link.txt", "inner-link.json", "way-out", "folder", "pipe.txt", "large.txt"]) {
      const { status, body } = await get(port, `/evidences/${name}`);
      expect(status, name).to.equal(404);
      expect(JSON.parse(body), name).to.include({ code: "evidence_not_found" });
    }
  });

  it("allows no path traversal", async () => {
    const up = ["..", "%2e%2e", "%2E.", "..%2f", "..%5c", "....//", ".%00.", "%252e%252e", "..;"];
    const paths = [
      ...up.flatMap((step) => [`/evidences/${step}/outside.txt`, `/evidences/${step}outside.txt`]),
      "/evidences//outside.txt",
      "/evidences/way-out/outside.txt",
      "/evidences/quote.json%00.txt",
      "/evidences/.hidden",
      "/evidences/%2e",
    ];
    for (const path of paths) {
      const { status, body } = await get(port, path);
      expect(status, path).to.be.oneOf([400, 404]);
      expect(body, path).not.to.contain("OUTSIDE");
    }
    const part = fc.constantFrom(
      "..",
      ".",
      "/",
      "%2f",
      "%2e",
      "outside.txt",
      "way-out",
      "\\",
      "%5c",
      "evidences",
      "%00",
      "~",
    );
    await fc.assert(
      fc.asyncProperty(fc.array(part, { maxLength: 6 }), async (parts) => {
        expect((await get(port, `/evidences/${parts.join("")}`)).body).not.to.contain("OUTSIDE");
      }),
      { seed: SEED, numRuns: count(100, 5_000) },
    );
  });

  it("answers HEAD, and 405 to mutating methods", async () => {
    expect(await get(port, "/evidences/quote.json", "HEAD")).to.include({ status: 200, body: "" });
    for (const method of ["PUT", "DELETE", "POST"])
      expect((await get(port, "/evidences/quote.json", method)).status, method).to.equal(405);
  });

  it("answers 503 without a TEE, without a folder, and while the folder is missing", async () => {
    const info = async (): Promise<unknown> => ({ tee: "none", config: {}, sandbox: { level: "none", missing: [] } });
    const cases: [Calls, EvidenceFolder | undefined][] = [
      [{ info }, new EvidenceFolder(evidenceDir)],
      [{ info: async () => INFO }, undefined],
      [{ info: async () => INFO }, new EvidenceFolder(join(directory, "not-yet"))],
    ];
    for (const [calls, folder] of cases) {
      const { port: other, server: its } = await serveRoutes(calls, folder);
      const { status, body } = await get(other, "/evidences/");
      expect(status).to.equal(503);
      expect(JSON.parse(body)).to.include({ code: "attestation_unavailable", retryable: true });
      its.close();
    }
  });

  it("passes on the executor's 503 when there is nothing to attest, or no executor", async () => {
    const attestation = async (): Promise<never> => {
      throw new KeywrightError("attestation_unavailable", "this deployment runs without a TEE.");
    };
    const { port: other, server: its } = await serveRoutes({ attestation }, undefined);
    expect(JSON.parse((await get(other, "/attestation")).body)).to.include({
      status: 503,
      code: "attestation_unavailable",
    });
    expect(JSON.parse((await get(other, "/info")).body)).to.include({ status: 503, code: "executor_unavailable" });
    its.close();
  });
});
