/** The fetcher process: the only one of the executor that talks to the outside. Holds no key and knows no chain. */
import { Socket } from "node:net";
import { COMMON_BARRIERS, tryBarriers } from "../walls/barriers";
import { becomeUser } from "../walls/confine";
import { encodeFrame, readFrames, type Frame } from "../frames";
import { exchange, type Exchanged, type Rules } from "./exchange";
import { toFetcherSchema, type Configuration, type FromFetcher, type ToFetcher } from "./messages";
import { ownRules, Sources } from "./sources";
import { FetchFailed } from "./types";

const CHANNEL = 3;

type Work = Exclude<ToFetcher, { type: "configure" } | { type: "cancel" }>;

let guestRules: Rules = { allowHosts: [], ports: [80, 443] };
let sources: Sources;
const running = new Map<number, AbortController>();

const channel = new Socket({ fd: CHANNEL, readable: true, writable: true });
const send = (message: FromFetcher, payload?: Buffer): void => void channel.write(encodeFrame(message, payload));

async function configure(configuration: Configuration): Promise<void> {
  const { allowHosts, ports, uid, secretPaths, ...endpoints } = configuration;
  guestRules = { allowHosts, ports };
  sources = new Sources(endpoints, ownRules(endpoints));
  becomeUser(uid);
  const { missing } = secretPaths ? await tryBarriers("the fetchers", COMMON_BARRIERS, secretPaths) : { missing: [] };
  send({ type: "ready", missing });
}

async function work(message: Work, payload: Buffer): Promise<void> {
  const stop = new AbortController();
  running.set(message.call, stop);
  try {
    const { response, body } = await perform(message, payload, stop.signal);
    send({ type: "done", call: message.call, ...(response && { response }) }, body);
  } catch (error) {
    const { code, message: reason } = error instanceof FetchFailed ? error : new FetchFailed("failed", "the fetcher failed");
    send({ type: "failed", call: message.call, code, message: reason });
  } finally {
    running.delete(message.call);
  }
}

async function perform(message: Work, payload: Buffer, signal: AbortSignal): Promise<{ body: Buffer; response?: Exchanged["response"] }> {
  if (message.type === "guest") return exchange(message.request, payload, guestRules, signal);
  if (message.type === "module") return { body: await sources.module(message.url, message.maxBytes) };
  if (message.type === "code") return { body: await sources.code(message.cid, message.maxBytes) };
  return { body: Buffer.from(await sources.jwks(message.url)) };
}

function onFrame({ header, payload }: Frame): void {
  const message = toFetcherSchema.parse(header);
  if (message.type === "configure") void configure(message.configuration);
  else if (message.type === "cancel") running.get(message.call)?.abort();
  else void work(message, payload);
}

channel.on("close", () => process.exit(0));
channel.on("error", () => process.exit(0));
readFrames(channel, onFrame, () => process.exit(1));
