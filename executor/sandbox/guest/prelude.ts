/**
 * The first script of every isolate: removes dangerous features, installs the guest's globals and returns the one
 * function with which the host calls the guest. Runs before any guest code, so it can rely on unpatched built-ins.
 */
import { createActions, type ImportDetail } from "./actions";
import { createBridge, type Bridge, type Host } from "./bridge";
import { createConsole, show } from "./console";
import { defineGlobal, defineLazyGlobals, harden } from "./harden";
import type { OldSignature } from "./older";
import type { RpcUrls } from "../types";
import { createTimers } from "./timers";
import { webGlobals } from "./web/globals";

/** The settings of a run, sent as JSON text. */
export interface Setting {
  params: Record<string, unknown>;
  imports: ImportDetail[];
  /**
   * Parameters that code without `main` reads as globals, as older actions do; without the names that it declares
   * itself.
   */
  paramsAsGlobals: string[];
  rpcUrls: RpcUrls;
  responseBytes: number;
  logsBytes: number;
}

/**
 * The host's messages: `begin` (a setting) before the code is evaluated, `finish` (main, completion value) after it,
 * `answer` to an op, `timer` when one is due.
 */
export type Deliver = (kind: "begin" | "finish" | "answer" | "timer", id: number, ...rest: unknown[]) => void;

export function install(
  op: Host["op"],
  log: Host["log"],
  random: Host["random"],
  convert: Host["convert"],
  timer: Host["timer"],
  end: Host["end"],
): Deliver {
  const { parse } = JSON;
  const bridge = createBridge(op);
  const timers = createTimers(timer);
  const run = createRun(bridge, end);
  installGlobals();
  harden();
  // Structured stack frames would expose functions of this closure.
  Object.defineProperty(Error, "prepareStackTrace", { value: undefined, writable: false, configurable: false });

  function installGlobals(): void {
    const line = run.limited(log);
    const actions = createActions({ ...run, bridge, log: line });
    defineGlobal("console", createConsole(line));
    for (const name of ["Actions", "LitActions"]) defineGlobal(name, actions);
    defineGlobal("Lit", Object.freeze({ Actions: actions, Headers: NO_HEADERS, Auth: NO_AUTH }));
    defineGlobal("LitHeaders", NO_HEADERS);
    defineGlobal("LitAuth", NO_AUTH);
    defineLazyGlobals(Object.keys(timers.globals), () => timers.globals);
    for (const [names, from] of webGlobals(bridge, random, convert)) defineLazyGlobals(names, from);
    // Library bundles look up the global object by these names.
    for (const name of ["self", "global"]) defineGlobal(name, globalThis);
  }

  return (kind, id, ...rest) => {
    if (kind === "answer")
      return bridge.answer(id, rest[0] as boolean, rest[1] as string, rest[2] as ArrayBuffer | undefined);
    if (kind === "begin") return run.begin(parse(rest[0] as string) as Setting);
    if (kind === "finish") return void run.finish(rest[0], rest[1]);
    try {
      timers.fire(id);
    } catch (error) {
      run.fail(error);
    }
  };
}

/**
 * Names that older programs read. Request headers and the sender's signatures do not reach an action, so the values are
 * empty and authentication checks fail.
 */
const NO_HEADERS = Object.freeze({});
const NO_AUTH = Object.freeze({
  authSigAddress: null,
  authMethodContexts: Object.freeze([]),
  resources: Object.freeze([]),
  customAuthResource: null,
  actionIpfsIdStack: Object.freeze([]),
});

/** The life of one run inside the guest: it ends once, with a response or an error. */
function createRun(bridge: Bridge, end: Host["end"]) {
  const { stringify } = JSON;
  const BaseError = Error;
  let setting: Setting;
  let response: string | undefined;
  const signatures = createSignatures();
  let ended = false;

  function begin(given: Setting): void {
    setting = given;
    defineParams(given);
  }

  async function finish(main: unknown, topLevel: unknown): Promise<void> {
    try {
      await topLevel;
      succeed(typeof main === "function" ? await (main as (params: unknown) => unknown)(setting.params) : undefined);
    } catch (error) {
      fail(error);
    }
  }

  function succeed(returned: unknown): void {
    const text = (returned === undefined ? response : jsonOf(returned)) ?? "null";
    if (ended) return;
    ended = true;
    const signed = signatures.text();
    const length = text.length + (signed?.length ?? 0);
    if (length > setting.responseBytes) return end("response_too_large", String(length), undefined);
    end("ok", text, signed);
  }

  function fail(error: unknown): void {
    if (ended) return;
    ended = true;
    const hostCode = bridge.codeOf(error);
    const code =
      hostCode === "permission_denied" || hostCode === "limit_exceeded" || hostCode === "budget_exceeded"
        ? hostCode
        : "threw";
    if (error instanceof BaseError)
      return end(
        code,
        describe(error),
        textOf(() => error.stack),
      );
    end(code, textOf(() => show(error)) ?? "an error that cannot be shown", undefined);
  }

  function jsonOf(value: unknown): string | undefined {
    // Too large already: skip the copy that JSON encoding makes.
    if (typeof value === "string" && value.length > setting.responseBytes) return value;
    try {
      return stringify(value);
    } catch (error) {
      throw new TypeError(`the response is not JSON: ${error instanceof BaseError ? error.message : "it threw"}`);
    }
  }

  /** A single line above the whole limit ends the run before the line is copied. */
  function limited(log: Host["log"]): Host["log"] {
    return (text) => {
      if (text.length <= setting.logsBytes) return log(text);
      if (ended) return;
      ended = true;
      end("logs_too_large", stringify(text.length), undefined);
    };
  }

  return {
    begin,
    finish,
    fail,
    limited,
    setResponse: (value: unknown) => void (response = jsonOf(value)),
    keepSignature: signatures.keep,
    setting: () => setting,
  };
}

function defineParams({ params, paramsAsGlobals }: Setting): void {
  defineGlobal("jsParams", params);
  if (paramsAsGlobals.length === 0) return;
  const names = paramsAsGlobals.filter((name) => !(name in globalThis));
  defineLazyGlobals(names, () => params);
}

/** What the functions of older systems signed, by name. */
function createSignatures() {
  const { stringify } = JSON;
  const { fromEntries } = Object;
  const kept: [string, OldSignature][] = [];
  return {
    keep: (name: string, signature: OldSignature) => void kept.push([name, signature]),
    text: () => (kept.length === 0 ? undefined : stringify(fromEntries(kept))),
  };
}

function describe(error: Error): string {
  const name = textOf(() => error.name);
  const message = textOf(() => error.message) ?? "";
  return name && name !== "Error" ? `${name}: ${message}` : message;
}

const { apply } = Reflect;
const { slice } = String.prototype;

/** Reading guest values may throw, and they may be very long. */
function textOf(read: () => unknown): string | undefined {
  try {
    const text = read();
    return typeof text === "string" ? (apply(slice, text, [0, 8_192]) as string) : undefined;
  } catch {
    return undefined;
  }
}
