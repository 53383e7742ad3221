/**
 * The starter: starts confined processes for the keyholder, reports their standard error and their exit, and kills them
 * all when the keyholder is gone. Holds no secrets; its arguments are the path of the socket to listen at.
 */
import { rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { dirname } from "node:path";
import { detectConfinement, startConfined, type Confined } from "./confine";
import { closePassedOn } from "./inherited";
import { GUEST_PRIORITY, setOwnOutOfMemoryScore } from "./priority";
import type { FromStarter, StartRequest, ToStarter } from "./starter";

/** What a process writes beyond this is not read: whoever controls it could fill the memory of all that read it. */
const MAX_STDERR_CHARS = 256 * 1_024;
const SOCKET = process.argv[2] ?? "";

/** Processes by id; a killed one whose request has not arrived yet is marked. */
const started = new Map<number, Confined | "killed">();

const report = (message: FromStarter): void => void process.send?.(message, () => undefined);

/** Calls back with the first line, after which nothing more is read here. */
function readRequest(socket: Socket, onRequest: (request: StartRequest) => void): void {
  let line = "";
  socket.on("error", () => undefined);
  socket.setEncoding("utf8").on("data", (text: string) => {
    line += text;
    if (line.endsWith("\n")) onRequest(JSON.parse(line) as StartRequest);
  });
}

function start(socket: Socket, { id, nodeArguments, confinement }: StartRequest): void {
  const wasKilled = started.get(id) === "killed";
  started.delete(id);
  if (wasKilled) {
    socket.destroy();
    return report({ type: "ended", id, code: null, signal: "SIGKILL" });
  }
  const confined = startConfined(nodeArguments, confinement, { channel: socket });
  // The program has a descriptor of its own.
  socket.destroy();
  started.set(id, confined);
  const { process: wrapper } = confined;
  let reported = 0;
  wrapper.stderr?.setEncoding("utf8").on("data", (text: string) => {
    reported += text.length;
    if (reported > MAX_STDERR_CHARS) wrapper.stderr?.destroy();
    else report({ type: "stderr", id, text });
  });
  const end = (code: number | null, signal: NodeJS.Signals | null, problem?: string): void => {
    if (!started.delete(id)) return;
    report({ type: "ended", id, code, signal, ...(problem === undefined ? {} : { problem }) });
  };
  wrapper.once("error", (error) => end(null, null, error.message));
  wrapper.once("close", end);
}

async function reportProgram(id: number): Promise<void> {
  const confined = started.get(id);
  const pid = confined === "killed" ? undefined : await confined?.programId();
  report({ type: "program", id, ...(pid === undefined ? {} : { pid }) });
}

function onMessage({ type, id }: ToStarter): void {
  const confined = started.get(id);
  if (type === "find-program") void reportProgram(id);
  else if (confined === undefined) started.set(id, "killed");
  else if (confined !== "killed") confined.kill();
}

function endAll(): void {
  for (const confined of started.values()) if (confined !== "killed") confined.kill();
  rmSync(dirname(SOCKET), { recursive: true, force: true });
  process.exit();
}

async function main(): Promise<void> {
  // A signal to the whole group must not end runs that the keyholder lets finish.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
  process.on("disconnect", endAll);
  process.on("message", onMessage);
  closePassedOn();
  setOwnOutOfMemoryScore(GUEST_PRIORITY.outOfMemoryScore);
  await detectConfinement();
  const server = createServer((socket) => readRequest(socket, (request) => start(socket, request)));
  server.listen(SOCKET, () => report({ type: "ready" }));
}

void main();
