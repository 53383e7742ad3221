/**
 * A double of dstack's guest agent for development and tests: the SDK's HTTP protocol over a Unix socket, with keys
 * derived from a seed and quotes of the simulated platform. It protects nothing; relayer and executor never import it,
 * and production rejects its signatures.
 */
import { createHash, hkdfSync, randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { chmod, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { composeHash } from "../../../protocol/attestation";
import { defaultAppCompose } from "./appCompose";
import {
  buildEventLog,
  type KeyProvider,
  type LoggedEvent,
  registersOf,
  SIMULATED_KEY_PROVIDER,
  withoutRuntimeDigests,
} from "./eventLog";
import { createPlatform, type Platform } from "./platform";
import { buildQuote, type Measurements } from "./quote";
import { defined } from "../../../protocol/defined";

const MAX_BODY_BYTES = 64 * 1024;
const REPORT_DATA_BYTES = 64;
const SEED_BYTES = 32;

export interface GuestAgentOptions {
  socketPath: string;
  /**
   * File for the seed of all keys (hex, mode 0600), so that they survive a restart; without it each start has new keys.
   */
  stateFile?: string;
  appCompose?: string;
  /**
   * 20 bytes; in dstack the address of the contract that authorizes what may run. Default: the start of the compose
   * hash.
   */
  appId?: Buffer;
  /**
   * The epoch of the keys, as in dstack's key management: a request names none and gets those of the current one.
   * Another number is another root. Default: 1.
   */
  keyEpoch?: number;
  /** The TCB status the platform's collateral reports. */
  tcbStatus?: string;
  /** What the boot measures as the source of the keys. Default: simulated. */
  keyProvider?: KeyProvider;
  /** What the application adds to the log after the boot. */
  addedEvents?: readonly LoggedEvent[];
}

export interface GuestAgentDouble {
  readonly socketPath: string;
  readonly appCompose: string;
  readonly composeHash: string;
  readonly measurements: Measurements;
  readonly eventLog: readonly LoggedEvent[];
  /** Root certificate and collateral under which its quotes verify: tests hand both to the verifier. */
  readonly platform: Platform;
  stop(): Promise<void>;
}

type Call = (request: Record<string, unknown>) => Promise<object> | object;

class BadRequest extends Error {}

export async function startGuestAgentDouble(options: GuestAgentOptions): Promise<GuestAgentDouble> {
  const machine = await createMachine(options);
  const calls = callsOf(machine);
  const server = createServer((request, response) => void answer(calls, request, response));
  await rm(options.socketPath, { force: true });
  server.listen(options.socketPath);
  await once(server, "listening");
  await chmod(options.socketPath, 0o600);
  return {
    ...machine,
    socketPath: options.socketPath,
    stop: async () => {
      server.close();
      server.closeAllConnections();
      await rm(options.socketPath, { force: true });
    },
  };
}

type Machine = Awaited<ReturnType<typeof createMachine>>;

async function createMachine(options: GuestAgentOptions) {
  const { stateFile, appCompose = defaultAppCompose(), appId, keyEpoch = 1, tcbStatus, addedEvents = [] } = options;
  const seed = seedFrom(stateFile);
  const hash = composeHash(appCompose);
  const named = (name: string, bytes: number): Buffer => Buffer.from(hkdfSync("sha256", seed, "", name, bytes));
  const identity = {
    appId: appId ?? Buffer.from(hash, "hex").subarray(0, 20),
    composeHash: Buffer.from(hash, "hex"),
    instanceId: named("instance", 20),
    keyProvider: options.keyProvider ?? SIMULATED_KEY_PROVIDER,
  };
  const eventLog = [...buildEventLog(identity), ...addedEvents];
  const mrtd = createHash("sha384").update("simulated firmware").digest();
  const measurements: Measurements = { mrtd, rtmrs: registersOf(eventLog) };
  return {
    seed,
    keyEpoch,
    appCompose,
    composeHash: hash,
    identity,
    eventLog,
    measurements,
    platform: await createPlatform(defined({ tcbStatus })),
  };
}

function seedFrom(stateFile: string | undefined): Buffer {
  if (stateFile === undefined) return randomBytes(SEED_BYTES);
  if (!existsSync(stateFile))
    writeFileSync(stateFile, randomBytes(SEED_BYTES).toString("hex"), { mode: 0o600, flag: "wx" });
  const seed = Buffer.from(readFileSync(stateFile, "utf8").trim(), "hex");
  if (seed.length !== SEED_BYTES)
    throw new Error(`${stateFile} does not hold ${SEED_BYTES} bytes of hex: delete it to start with new keys`);
  return seed;
}

function callsOf(machine: Machine): Record<string, Call> {
  const vmConfig = JSON.stringify({ spec_version: 1, cpu_count: 2, memory_size: 4 * 2 ** 30, simulated: true });
  return {
    // As in dstack, only path and epoch separate keys: purpose and algorithm do not.
    "/GetKey": ({ path }) => ({
      key: Buffer.from(
        hkdfSync("sha256", machine.seed, epochSalt(machine.keyEpoch), `key ${textOf(path ?? "", "path")}`, 32),
      ).toString("hex"),
      signature_chain: [Buffer.alloc(65, 1).toString("hex"), Buffer.alloc(65, 2).toString("hex")],
    }),
    "/GetQuote": async ({ report_data }) => {
      const reportData = reportDataOf(report_data);
      const quote = await buildQuote(machine.platform, machine.measurements, reportData);
      const event_log = JSON.stringify(withoutRuntimeDigests(machine.eventLog));
      return { quote: quote.toString("hex"), event_log, report_data: reportData.toString("hex"), vm_config: vmConfig };
    },
    "/Info": () => infoOf(machine, vmConfig),
    "/Version": () => ({ version: "0.5.8", rev: "simulated" }),
  };
}

function infoOf(
  { identity, measurements, eventLog, appCompose, composeHash: hash }: Machine,
  vmConfig: string,
): object {
  const [rtmr0, rtmr1, rtmr2, rtmr3] = measurements.rtmrs.map((register) => register.toString("hex"));
  const deviceId = createHash("sha256").update("simulated device").digest("hex");
  const mrAggregated = createHash("sha256")
    .update(Buffer.concat([measurements.mrtd, ...measurements.rtmrs]))
    .digest("hex");
  const osImageHash = createHash("sha256").update("simulated image").digest("hex");
  const measured = { mr_aggregated: mrAggregated, os_image_hash: osImageHash, compose_hash: hash, device_id: deviceId };
  const tcbInfo = {
    mrtd: measurements.mrtd.toString("hex"),
    rtmr0,
    rtmr1,
    rtmr2,
    rtmr3,
    ...measured,
    app_compose: appCompose,
    event_log: eventLog,
  };
  return {
    app_id: identity.appId.toString("hex"),
    instance_id: identity.instanceId.toString("hex"),
    app_cert: "",
    app_name: "simulated",
    tcb_info: JSON.stringify(tcbInfo),
    ...measured,
    key_provider_info: JSON.stringify(identity.keyProvider),
    vm_config: vmConfig,
  };
}

const epochSalt = (epoch: number): string => (epoch === 1 ? "" : `epoch ${epoch}`);

function textOf(value: unknown, name: string): string {
  if (typeof value !== "string") throw new BadRequest(`${name} must be a string`);
  return value;
}

function reportDataOf(value: unknown): Buffer {
  const hex = textOf(value, "report_data");
  if (!/^([0-9a-fA-F]{2}){0,64}$/.test(hex)) throw new BadRequest("report_data must be at most 64 bytes of hex");
  return Buffer.concat([Buffer.from(hex, "hex"), Buffer.alloc(REPORT_DATA_BYTES)]).subarray(0, REPORT_DATA_BYTES);
}

async function answer(calls: Record<string, Call>, request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    const call =
      request.method === "POST" && Object.hasOwn(calls, request.url ?? "") ? calls[request.url ?? ""] : undefined;
    if (!call) return send(response, 404, { error: "no such call" });
    send(response, 200, await call(await bodyOf(request)));
  } catch (error) {
    send(response, error instanceof BadRequest ? 400 : 500, {
      error: error instanceof Error ? error.message : "failed",
    });
  }
}

async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) {
    text += String(chunk);
    if (text.length > MAX_BODY_BYTES) throw new BadRequest("the body is too large");
  }
  try {
    return JSON.parse(text || "{}") as Record<string, unknown>;
  } catch {
    throw new BadRequest("the body is not JSON");
  }
}

/** ASCII only, because the SDK counts characters where HTTP counts bytes. */
function send(response: ServerResponse, status: number, value: object): void {
  const body = JSON.stringify(value).replace(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  response
    .writeHead(status, { "Content-Type": "application/json", "Content-Length": body.length, Connection: "close" })
    .end(body);
}
