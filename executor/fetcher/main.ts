/** The fetcher process: makes all outgoing requests of the executor except those to the chain. Holds no key. */
import { Socket } from "node:net";
import { readFrames, writeFrame, type Frame } from "../frames";
import { COMMON_BARRIERS, tryBarriers } from "../confinement/barriers";
import { inTurn } from "../loop";
import { becomeUser } from "../confinement/confine";
import { exchange, requireReachable, type Rules } from "./exchange";
import { toFetcherSchema, type Configuration, type FromFetcher, type ToFetcher } from "./messages";
import { Names } from "./names";
import { ownRules, Sources } from "./sources";
import { FetchFailed, type Exchanged } from "./types";

const CHANNEL = 3;
// Node keeps a timing entry with the URL of each recent fetch, which nothing reads.
performance.setResourceTimingBufferSize(0);

type Work = Exclude<ToFetcher, { type: "configure" } | { type: "cancel" } | { type: "grown" }>;
interface Running {
  readonly stop: AbortController;
  grown?: () => void;
}

let guestRules: Rules = { allowHosts: [], ports: [80, 443] };
let webhookRules: Rules = guestRules;
let sources: Sources;
let names = new Names();
const running = new Map<number, Running>();

const channel = new Socket({ fd: CHANNEL, readable: true, writable: true });
const send = (message: FromFetcher, payload?: Buffer): void => writeFrame(channel, message, payload);

async function configure(configuration: Configuration): Promise<void> {
  const { allowHosts, webhookAllowHosts = [], ports, uid, dnsServers, secretPaths, ...endpoints } = configuration;
  guestRules = { allowHosts, ports };
  webhookRules = { allowHosts: webhookAllowHosts, ports };
  names = new Names({ servers: dnsServers });
  sources = new Sources(endpoints, ownRules(endpoints));
  becomeUser(uid);
  const { missing } = secretPaths ? await tryBarriers("the fetchers", COMMON_BARRIERS, secretPaths) : { missing: [] };
  send({ type: "ready", missing });
}

async function work(message: Work, payload: Buffer): Promise<void> {
  const mine: Running = { stop: new AbortController() };
  running.set(message.call, mine);
  try {
    const { response, body } = await perform(message, payload, mine);
    send({ type: "done", call: message.call, ...(response && { response }) }, body);
  } catch (error) {
    const { code, message: reason } =
      error instanceof FetchFailed ? error : new FetchFailed("failed", "the fetcher failed");
    send({ type: "failed", call: message.call, code, message: reason });
  } finally {
    running.delete(message.call);
  }
}

async function perform(
  message: Work,
  payload: Buffer,
  mine: Running,
): Promise<{ body: Buffer; response?: Exchanged["response"] }> {
  const { signal } = mine.stop;
  if (message.type === "guest") return exchange(message.request, payload, rulesOf(message, mine), signal);
  if (message.type === "check")
    return requireReachable(message.url, rulesOf(message, mine), signal).then(() => ({ body: Buffer.alloc(0) }));
  if (message.type === "module") return { body: await sources.module(message.url, message.maxBytes, signal) };
  if (message.type === "code") return { body: await sources.code(message.cid, message.maxBytes, signal) };
  return { body: Buffer.from(await sources.jwks(message.url)) };
}

type Ruled = Extract<Work, { type: "guest" | "check" }>;

function rulesOf({ call, run, lookups, account, isWebhook = false }: Ruled, mine: Running): Rules {
  const ofRun = run < 0 ? undefined : names.ofRun(run, lookups);
  const grow = (): Promise<void> => {
    const grown = new Promise<void>((resolve) => (mine.grown = resolve));
    send({ type: "grow", call });
    return grown;
  };
  return {
    ...(isWebhook ? webhookRules : guestRules),
    resolve: (host, signal) => (ofRun ? ofRun.addressesOf(host, signal) : names.lookupOfService(host, signal)),
    grow,
    takeTurn: (work) => inTurn(account, work, mine.stop.signal),
  };
}

function onFrame({ header, payload }: Frame): void {
  const message = toFetcherSchema.parse(header);
  if (message.type === "configure") void configure(message.configuration);
  else if (message.type === "cancel") running.get(message.call)?.stop.abort();
  else if (message.type === "grown") running.get(message.call)?.grown?.();
  else void work(message, payload);
}

channel.on("close", () => process.exit(0));
channel.on("error", () => process.exit(0));
readFrames(channel, onFrame, () => process.exit(1));
