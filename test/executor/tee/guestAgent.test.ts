/**
 * A guest agent that lies, stalls, disconnects or never ends its answer makes an attestation fail, never the keyholder.
 */
import { spawn } from "node:child_process";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { openTee, TeeError, type TeeSource } from "../../../executor/tee";
import { KeywrightError } from "../../../protocol/errors";
import { startGuestAgentDouble, type GuestAgentDouble } from "../../../scripts/dev/tee/guestAgent";
import { failureOf } from "../../support/refusal";
import { MIB } from "../../../protocol/limits";

const DIST = join(__dirname, "../../../dist");
const TIMEOUT_MS = 1_500;

const http = (body: string, status = "200 OK"): string =>
  `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
const json = (value: unknown, status?: string): string => http(JSON.stringify(value), status);

/** A faulty agent: what it does with the connection after a request. */
type Fault = (socket: Socket) => void;
const answering =
  (text: string): Fault =>
  (socket) =>
    void socket.end(text);

/** Writes as fast as the other side reads. */
const flooding: Fault = (socket) => {
  const chunk = Buffer.alloc(MIB, 0x20);
  socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${1024 * MIB * 4}\r\n\r\n`);
  const pour = (): void => {
    while (!socket.destroyed && socket.write(chunk));
  };
  socket.on("drain", pour);
  pour();
};

const KEY_FAULTS: Record<string, Fault> = {
  "31 bytes": answering(json({ key: "11".repeat(31), signature_chain: [] })),
  "33 bytes": answering(json({ key: "11".repeat(33), signature_chain: [] })),
  "32 zero bytes": answering(json({ key: "00".repeat(32), signature_chain: [] })),
  "no key at all": answering(json({})),
  "a number for a key": answering(json({ key: 7, signature_chain: [] })),
  "no hex": answering(json({ key: "zz".repeat(32), signature_chain: [] })),
  "an error": answering(json({ error: "denied" }, "403 Forbidden")),
  "no JSON": answering(http("<html>")),
  null: answering(http("null")),
  "no HTTP": answering("\0\0\0\0"),
  "nothing, and hangs up": (socket) => void socket.end(),
  "half an answer": (socket) => void socket.end(json({ key: "11".repeat(32), signature_chain: [] }).slice(0, -20)),
};

const QUOTE_FAULTS: Record<string, Fault> = {
  "a quote over other report data": answering(json({ quote: "04".repeat(700), event_log: "[]" })),
  "no quote": answering(json({ event_log: "[]" })),
  "a log that is no JSON": answering(json({ quote: "ab".repeat(64), event_log: "[" })),
  "an error": answering(json({ error: "no TDX device at /secret/path" }, "500 Internal Server Error")),
  "an answer of 30 MiB": answering(json({ quote: "ab".repeat(15 * MIB), event_log: "[]" })),
  "an endless answer": flooding,
  "no answer": () => undefined,
  "an answer byte by byte": (socket) => {
    const timer = setInterval(() => socket.write("H"), 20);
    socket.on("close", () => clearInterval(timer));
  },
  "a broken connection": (socket) => void socket.destroy(),
};

describe("the keyholder and a faulty guest agent", () => {
  const directory = mkdtempSync(join(tmpdir(), "agent-"));
  const socketPath = join(directory, "faulty.sock");
  let fault: Fault = () => undefined;
  let server: Server;
  let tee: TeeSource;

  before(async () => {
    const sockets = new Set<Socket>();
    server = createServer((socket) => {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => sockets.delete(socket));
      socket.once("data", () => fault(socket));
    });
    server.on("close", () => sockets.forEach((socket) => socket.destroy()));
    server.listen(socketPath);
    await once(server, "listening");
    tee = openTee({ kind: "dstack", endpoint: socketPath, timeoutMs: TIMEOUT_MS });
  });
  after(async () => {
    await tee.close();
    server.close();
    server.emit("close");
    rmSync(directory, { recursive: true, force: true });
  });

  for (const [name, behaviour] of Object.entries(KEY_FAULTS)) {
    it(`does not start without a valid root key when it gets ${name}`, async () => {
      fault = behaviour;
      const error = await failureOf(tee.rootKey());
      expect(error).to.be.instanceOf(TeeError);
      expect(String(error)).not.to.contain("11".repeat(8));
    });
  }

  for (const [name, behaviour] of Object.entries(QUOTE_FAULTS)) {
    it(`answers 503 when it asks for a quote and gets ${name}`, async () => {
      fault = behaviour;
      const before = process.memoryUsage.rss();
      const started = Date.now();
      const error = await failureOf(tee.quote(Buffer.alloc(64, 5)));
      expect(error).to.be.instanceOf(KeywrightError);
      expect((error as KeywrightError).code).to.equal("attestation_unavailable");
      expect((error as KeywrightError).detail).not.to.contain("/secret/path");
      expect(Date.now() - started).to.be.lessThan(TIMEOUT_MS + 3_000);
      expect(process.memoryUsage.rss() - before).to.be.lessThan(200 * MIB);
    });
  }

  it("answers 503 to info of the wrong shape", async () => {
    for (const body of [
      {},
      { tcb_info: "{}" },
      { tcb_info: "no json" },
      { app_id: 1, tcb_info: JSON.stringify({ app_compose: 7 }) },
    ]) {
      fault = answering(json(body));
      expect(((await failureOf(tee.info())) as KeywrightError).code).to.equal("attestation_unavailable");
    }
  });

  it("recovers with the agent: the next call after any fault is served", async () => {
    const double = await startGuestAgentDouble({ socketPath: join(directory, "good.sock") });
    const good = openTee({ kind: "simulated", endpoint: double.socketPath, timeoutMs: TIMEOUT_MS });
    try {
      expect((await good.quote(Buffer.alloc(64, 1))).quote).to.have.length.above(1264);
      await double.stop();
      expect(((await failureOf(good.quote(Buffer.alloc(64, 2)))) as KeywrightError).code).to.equal(
        "attestation_unavailable",
      );
      const again = await startGuestAgentDouble({ socketPath: double.socketPath });
      expect((await good.quote(Buffer.alloc(64, 3))).quote).to.contain("03".repeat(64));
      await again.stop();
    } finally {
      await good.close();
    }
  });

  it("asks once for all who want a quote over nothing, and again after a failure", async () => {
    let asked = 0;
    const nothing = Buffer.alloc(64);
    fault = (socket) => (asked++, answering(json({ error: "busy" }, "500 Internal Server Error"))(socket));
    expect(await failureOf(tee.quote(nothing))).to.be.instanceOf(KeywrightError);
    fault = (socket) => (
      asked++,
      answering(json({ quote: "00".repeat(700), event_log: "[]", report_data: "00".repeat(64) }))(socket)
    );
    const crowd = await Promise.all(Array.from({ length: 100 }, () => tee.quote(nothing)));
    expect(new Set(crowd).size).to.equal(1);
    expect(asked).to.equal(2);
  });

  it("limits waiting calls: the rest are refused at once, and queued ones are served", async () => {
    const double = await startGuestAgentDouble({ socketPath: join(directory, "crowd.sock") });
    const crowd = openTee({ kind: "simulated", endpoint: double.socketPath });
    try {
      const outcomes = await Promise.allSettled(
        Array.from({ length: 100 }, (_, index) => crowd.quote(Buffer.alloc(64, index + 1))),
      );
      const served = outcomes.filter(({ status }) => status === "fulfilled");
      expect(served.length).to.equal(32);
      expect((await crowd.quote(Buffer.alloc(64, 200))).quote).to.contain("c8".repeat(64));
    } finally {
      await crowd.close();
      await double.stop();
    }
  });
});

describe("the process that connects to the guest agent", () => {
  const directory = mkdtempSync(join(tmpdir(), "sdk-"));
  after(() => rmSync(directory, { recursive: true, force: true }));

  it("connects to an agent over the network as well, for development", async () => {
    const double = await startGuestAgentDouble({ socketPath: join(directory, "agent.sock") });
    const wire = createServer((socket) => void socket.pipe(connect(double.socketPath)).pipe(socket)).listen(
      0,
      "127.0.0.1",
    );
    await once(wire, "listening");
    const tee = openTee({ kind: "simulated", endpoint: `http://127.0.0.1:${(wire.address() as AddressInfo).port}` });
    try {
      expect(await tee.rootKey()).to.have.length(32);
      expect((await tee.quote(Buffer.alloc(64, 4))).quote).to.contain("04".repeat(64));
      expect(await tee.info()).to.have.property("compose_hash", double.composeHash);
    } finally {
      await tee.close();
      wire.close();
      await double.stop();
    }
  });

  it("has no environment, and exits with the keyholder even when that is killed during a call", async () => {
    const silent = createServer(() => undefined).listen(join(directory, "silent.sock"));
    await once(silent, "listening");
    const program =
      `require(${JSON.stringify(join(DIST, "executor/tee"))}).openTee({ kind: "dstack", endpoint: ` +
      `${JSON.stringify(join(directory, "silent.sock"))} }).quote(Buffer.alloc(64, 1)).catch(() => {}); ` +
      "setInterval(() => {}, 1000)";
    const keyholder = spawn(process.execPath, ["-e", program], {
      env: { SECRET_OF_THE_KEYHOLDER: "canary" },
      stdio: "ignore",
    });
    try {
      const [pid = 0] = await eventually(
        // Between fork and exec it still is a copy of the keyholder.
        () =>
          childrenOf(keyholder.pid ?? 0).filter((id) =>
            readFileSync(`/proc/${id}/cmdline`, "utf8").includes("sdkProcess"),
          ),
        (children) => children.length > 0,
      );
      expect(readFileSync(`/proc/${pid}/environ`, "utf8")).not.to.contain("canary");
      keyholder.kill("SIGKILL");
      await eventually(
        () => existsSync(`/proc/${pid}`),
        (alive) => !alive,
      );
    } finally {
      keyholder.kill("SIGKILL");
      silent.close();
    }
  });
});

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);

async function eventually<T>(look: () => T, holds: (value: T) => boolean): Promise<T> {
  for (let tries = 0; tries < 100; tries++) {
    const value = look();
    if (holds(value)) return value;
    await sleep(50);
  }
  throw new Error("it did not happen within five seconds");
}

describe("the root key from the TEE", () => {
  const directory = mkdtempSync(join(tmpdir(), "root-"));
  after(() => rmSync(directory, { recursive: true, force: true }));
  const running: GuestAgentDouble[] = [];
  const start = async (name: string, stateFile?: string): Promise<TeeSource> => {
    running.push(
      await startGuestAgentDouble({
        socketPath: join(directory, name),
        ...(stateFile === undefined ? {} : { stateFile: join(directory, stateFile) }),
      }),
    );
    return openTee({ kind: "simulated", endpoint: join(directory, name) });
  };
  afterEach(() => Promise.all(running.splice(0).map((double) => double.stop())));

  it("is the same at every start of the same machine and different on another", async () => {
    const keys = [];
    for (const [socket, state] of [
      ["a.sock", "seed-1"],
      ["b.sock", "seed-1"],
      ["c.sock", "seed-2"],
      ["d.sock"],
    ] as const) {
      const tee = await start(socket, state);
      keys.push((await tee.rootKey()).toString("hex"));
      await tee.close();
    }
    expect(keys[0]).to.equal(keys[1]);
    expect(new Set(keys).size).to.equal(3);
    expect(statSync(join(directory, "seed-1")).mode & 0o777).to.equal(0o600);
  });

  it("is never read from an endpoint in the SDK's environment variables", async () => {
    const decoy = await start("decoy.sock");
    const decoyKey = (await decoy.rootKey()).toString("hex");
    process.env.DSTACK_SIMULATOR_ENDPOINT = join(directory, "decoy.sock");
    try {
      expect(() => openTee({ kind: "dstack" })).to.throw(TeeError, "DSTACK_ENDPOINT");
      const tee = openTee({ kind: "dstack", endpoint: join(directory, "nobody.sock"), timeoutMs: TIMEOUT_MS });
      expect(await failureOf(tee.rootKey()))
        .to.be.instanceOf(TeeError)
        .with.property("reason", "unreachable");
      const real = await start("real.sock");
      expect((await real.rootKey()).toString("hex")).not.to.equal(decoyKey);
    } finally {
      delete process.env.DSTACK_SIMULATOR_ENDPOINT;
    }
  });

  it("does not exist without a TEE, and nothing is attested there", async () => {
    const none = openTee({ kind: "none" });
    expect(await failureOf(none.rootKey()))
      .to.be.instanceOf(TeeError)
      .with.property("reason", "not_configured");
    expect(((await failureOf(none.quote(Buffer.alloc(64)))) as KeywrightError).code).to.equal(
      "attestation_unavailable",
    );
    expect(await none.info()).to.equal(undefined);
  });
});
