/**
 * The child process: runs untrusted code and holds no secrets. One run at a time, each in a fresh isolate. Communicates
 * over file descriptor 3 only; the keyholder ends it by closing the channel or by a signal.
 */
import { readSync } from "node:fs";
import { Socket } from "node:net";
import { Awake } from "../awake";
import { becomeUser } from "../confinement/confine";
import { defined } from "../../protocol/defined";
import { pauseThread, readFrames, writeFrameSync, type Frame } from "../frames";
import { analyse, Unparsable, type Analysis } from "./analyse";
import { Guest, type GuestEnd } from "./isolate";
import { LogSender } from "./logSender";
import { ImportRefused, loadModules, type ImportAnswer } from "./modules";
import type { FromChild, ToChild } from "./messages";
import { selfTest } from "./selfTest";
import { MAX_ERROR_CHARS, type RunLimits } from "./types";

const CHANNEL = 3;
const CODE_CACHE_ENTRIES = 16;
const END_WITHIN_MS = 2_000;

const send = (message: FromChild, payload?: Buffer): void => writeFrameSync(CHANNEL, message, payload, readAhead);

/** The isolate prepared for the next run, with the last run's heap size and library. */
let spare: Guest | undefined;
let current: { run: number; guest: Guest } | undefined;
let nextCall = -1;
/** For what is read while the guest is blocked. */
const arriving = Buffer.allocUnsafeSlow(65_536);
const awake = new Awake();
const hostCalls = new Map<number, { resolve(answer: ImportAnswer): void; reject(error: Error): void }>();
const analyses = new Map<string, Analysis>();

function analysisOf(run: number, code: string): Analysis {
  const known = analyses.get(code);
  if (known) return known;
  const analysis = analyse(code);
  if (analyses.size >= CODE_CACHE_ENTRIES) analyses.clear();
  // Large sources are not cached: parsing is cheap, memory is not.
  if (code.length < 65_536) analyses.set(code, analysis);
  send({ type: "parsed", run, isCached: analyses.has(code) });
  return analysis;
}

/** Runs after the answer is sent, so that the next run finds a prepared isolate. */
function prepareSpare(heapMiB: number, ethers: Analysis["ethers"]): void {
  if (!current) spare ??= new Guest(heapMiB, ethers);
}

/** A fresh isolate with the library the code uses. */
function takeGuest(heapMiB: number, ethers: Analysis["ethers"]): Guest {
  const ready = spare;
  spare = undefined;
  if (ready && ready.heapMiB === heapMiB && ready.ethers === ethers) return ready;
  ready?.dispose();
  return new Guest(heapMiB, ethers);
}

type Run = Extract<ToChild, { type: "run" }>;

async function startRun({ run, params: paramsText, limits, rpcUrls = {} }: Run, code: string): Promise<void> {
  try {
    const analysis = analysisOf(run, code);
    const { modules, details } = await loadModules(analysis.imports, (specifier) => askForModule(run, specifier));
    const guest = takeGuest(limits.heapMiB, analysis.ethers);
    current = { run, guest };
    const params = JSON.parse(paramsText) as Record<string, unknown>;
    const own = new Set(analysis.globals);
    const setting = {
      params,
      imports: details,
      paramsAsGlobals: analysis.entry === "none" ? Object.keys(params).filter((name) => !own.has(name)) : [],
      rpcUrls,
      responseBytes: limits.responseBytes,
      logsBytes: limits.logsBytes,
    };
    await guest.run({ code, analysis, setting, modules, wallMs: limits.wallMs }, eventsOf(run, limits, analysis));
  } catch (error) {
    const isInvalid = error instanceof Unparsable || error instanceof ImportRefused;
    const message = error instanceof Error ? error.message : "the action made its sandbox fail";
    // Whatever else fails here fails because of the action: the run ends in order, and is charged.
    sendError(run, { code: isInvalid ? "invalid_code" : "sandbox_crashed", message });
  }
}

function eventsOf(run: number, limits: RunLimits, analysis: Analysis) {
  const logs = new LogSender((text) => send({ type: "log", run }, Buffer.from(text)));
  const left = { fetches: limits.fetches, keyOps: limits.keyOps };
  return {
    op: (call: number, name: string, args: string, body: Buffer | undefined) => {
      const isFetch = name === "fetch";
      if (isFetch) send({ type: "op", run, call, name, args }, body);
      else send({ type: "op", run, call, name }, Buffer.from(args));
      if (left[isFetch ? "fetches" : "keyOps"]-- <= 0) blockUntilEnded();
      // What a fetch waits for is far away.
      if (!isFetch) awake.stay();
    },
    log: (text: string) => logs.add(text.slice(0, limits.logsBytes + 1)),
    end: (end: GuestEnd) => {
      current = undefined;
      logs.flush();
      sendEnd(run, end, limits);
      setImmediate(() => prepareSpare(limits.heapMiB, analysis.ethers));
    },
  };
}

/**
 * The keyholder ends a run that exceeds its number of operations. The guest is blocked until then, so that a flood
 * neither fills the heap first nor reaches the keyholder.
 */
function blockUntilEnded(): void {
  for (const start = performance.now(); performance.now() - start < END_WITHIN_MS; pauseThread(10)) readAhead();
}

/**
 * Takes what has arrived, while the guest is blocked; it is handled afterwards, in order. The keyholder, which may have
 * no memory for more before its answers have left, then reads on.
 */
function readAhead(): void {
  // Called again and again while the guest is blocked, which may be for the whole run.
  if (!channel.isPaused()) {
    channel.pause();
    setImmediate(() => channel.resume());
  }
  for (let chunk = arrived(); chunk !== undefined; chunk = arrived()) channel.push(chunk);
}

function arrived(): Buffer | undefined {
  try {
    const count = readSync(CHANNEL, arriving);
    return count === 0 ? undefined : Buffer.from(arriving.subarray(0, count));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EAGAIN") return undefined;
    throw error;
  }
}

function sendEnd(run: number, { response, signatures, error }: GuestEnd, { responseBytes }: RunLimits): void {
  if (error) return sendError(run, error);
  const bytes = Buffer.from(response);
  if (bytes.length <= responseBytes)
    return send({ type: "end", run, ...(signatures !== undefined && { signatures }) }, bytes);
  const message = `the response has ${bytes.length} bytes of JSON; ${responseBytes} are allowed`;
  sendError(run, { code: "response_too_large", message });
}

/** Its texts may be as long as the guest's memory, and nothing beyond the child counts them. */
function sendError(run: number, { code, message, stack }: NonNullable<GuestEnd["error"]>): void {
  const [shortMessage, shortStack] = [message, stack].map((text) => text?.slice(0, MAX_ERROR_CHARS));
  send({ type: "end", run, error: { code, message: shortMessage ?? "", ...defined({ stack: shortStack }) } });
}

/** The child's own calls have negative ids, the guest's positive ones. */
function askForModule(run: number, specifier: string): Promise<ImportAnswer> {
  return new Promise((resolve, reject) => {
    const call = nextCall--;
    hostCalls.set(call, { resolve, reject });
    send({ type: "op", run, call, name: "import" }, Buffer.from(JSON.stringify({ specifier })));
  });
}

function onAnswer(message: Extract<ToChild, { type: "answer" }>, payload: Buffer): void {
  const waiting = hostCalls.get(message.call);
  if (waiting) {
    hostCalls.delete(message.call);
    if (message.ok)
      return waiting.resolve({
        source: payload.toString("utf8"),
        ...(JSON.parse(message.value ?? "") as { url: string; integrity: string }),
      });
    return waiting.reject(new ImportRefused(message.message));
  }
  if (current?.run !== message.run) return;
  awake.end();
  if (!message.ok) {
    const { code, message: text } = message;
    return current.guest.answer(message.call, false, JSON.stringify({ code, message: text }), undefined);
  }
  const body = message.value === undefined || payload.length === 0 ? undefined : payload;
  current.guest.answer(message.call, true, message.value ?? payload.toString(), body);
}

function onFrame({ header, payload }: Frame): void {
  const message = header as ToChild;
  if (message.type === "run") return void startRun(message, payload.toString("utf8"));
  if (message.type === "answer") return onAnswer(message, payload);
  void selfTest(message.secretPaths).then((findings) => send({ type: "self-test", ...findings }));
}

const channel = new Socket({ fd: CHANNEL, readable: true, writable: true });
// The keyholder is gone. SIGKILL, because an orderly exit would wait for a guest that loops.
channel.on("close", () => process.kill(process.pid, "SIGKILL"));
channel.on("error", () => process.kill(process.pid, "SIGKILL"));
new Guest(Number(process.argv[2]), undefined).warmUp();
spare = new Guest(Number(process.argv[2]), undefined);
becomeUser(Number(process.argv[3]));
readFrames(channel, onFrame, () => process.exit(1));
send({ type: "ready" });
