/** Assembles the TLS endpoint inside the TEE: certificate, evidence, both servers, renewal. */
import { once } from "node:events";
import type { IncomingMessage, Server } from "node:http";
import type { Server as HttpsServer } from "node:https";
import type { AddressInfo, Server as NetServer, Socket } from "node:net";
import { shareConnections } from "../protocol/connections";
import type { Logger } from "../protocol/log";
import { endUnreadAnswers } from "../protocol/unreadAnswers";
import { Agent, request } from "undici";
import { EXECUTOR_CALLS } from "../protocol/executor";
import { currentCertificate, endTime, renewalTime, type Certificate, type Challenges } from "./certificates";
import type { Config } from "./config";
import { writeEvidence } from "./evidence";
import { createHttpEndpoint, createTlsEndpoint } from "./proxy";
import { ClientAddresses, createProxyEndpoint } from "./proxyProtocol";

/** With TLS an idle one takes some eighty kilobytes; the compose file gives the ingress 512 MiB. */
const MAX_CONNECTIONS = 3_072;
/** The longest that a client takes nothing of an answer. */
const UNREAD_MS = 60_000;
const RETRY_MS = 60_000;
/** How long requests under way may take once the process is to stop: the compose file stops the relayer first. */
const DRAIN_MS = 45_000;
const SWEEP_MS = 50;
/** Node's timers are limited to 24 days. */
const MAX_WAIT_MS = 24 * 3_600_000;

export interface Ingress {
  readonly httpsPort: number;
  readonly httpPort: number;
  stop(): Promise<void>;
}

/** Resolves when TLS is served and the evidence is written. @throws Error when there is no certificate or no quote. */
export async function startIngress(
  config: Config,
  log: Logger,
  { unreadMs = UNREAD_MS, drainMs = DRAIN_MS } = {},
): Promise<Ingress> {
  const challenges: Challenges = new Map();
  const http = createHttpEndpoint(config.DOMAIN, challenges);
  const httpPort = await listen(http, config.HTTP_PORT, log);
  const certify = async (until = renewalTime): Promise<Certificate> => {
    const options = {
      domain: config.DOMAIN,
      directoryUrl: config.ACME_DIRECTORY_URL,
      email: config.ACME_EMAIL,
      folder: config.STATE_DIR,
    };
    const certificate = await currentCertificate(options, challenges, until);
    const quoteOver = (sha256: string): Promise<object> => evidenceQuote(config.EXECUTOR_SOCKET, sha256);
    await writeEvidence({ folder: config.EVIDENCE_DIR, domain: config.DOMAIN, ...certificate, quoteOver });
    return certificate;
  };
  try {
    // One that is due is served until there is another: the authority may be away.
    const first = await certify(endTime);
    const addresses = new ClientAddresses();
    const https = createTlsEndpoint(
      new URL(config.UPSTREAM_URL),
      { key: first.privateKey, cert: first.chain },
      addresses,
    );
    const connections = connectionsOf(https);
    const addressOf = (socket: Socket): string | undefined => addresses.of(socket);
    const clientOf = ({ socket }: IncomingMessage): string | undefined => addressOf(socket);
    for (const server of [http, https]) endUnreadAnswers(server, { withinMs: unreadMs, clientOf });
    shareConnections([http, https], { total: MAX_CONNECTIONS, addressOf });
    const front = config.PROXY_PROTOCOL ? createProxyEndpoint(https, addresses) : https;
    const httpsPort = await listen(front, config.HTTPS_PORT, log);
    const renewal = renewing(
      first,
      certify,
      ({ privateKey, chain }) => https.setSecureContext({ key: privateKey, cert: chain, minVersion: "TLSv1.2" }),
      log,
    );
    return {
      httpsPort,
      httpPort,
      stop: async () => {
        renewal.stop();
        await Promise.all([closed(http, http), closed(front, connections, drainMs)]);
      },
    };
  } catch (error) {
    await closed(http, http);
    throw error;
  }
}

/** Renews the certificate before it expires; retries every minute on failure. */
function renewing(
  first: Certificate,
  certify: () => Promise<Certificate>,
  use: (certificate: Certificate) => void,
  log: Logger,
): { stop(): void } {
  let timer: NodeJS.Timeout;
  const wait = (ms: number): void => {
    timer = setTimeout(() => void renew(), Math.min(Math.max(ms, 1_000), MAX_WAIT_MS));
  };
  const renew = async (): Promise<void> => {
    try {
      const certificate = await certify();
      use(certificate);
      wait(renewalTime(certificate.chain) - Date.now());
    } catch (error) {
      log.error({ err: error }, "the certificate could not be renewed; it is tried again");
      wait(RETRY_MS);
    }
  };
  wait(renewalTime(first.chain) - Date.now());
  return { stop: () => clearTimeout(timer) };
}

async function evidenceQuote(socketPath: string, sha256: string): Promise<object> {
  const dispatcher = new Agent({ connect: { socketPath } });
  try {
    const { path, answer } = EXECUTOR_CALLS.evidenceQuote;
    const headers = { "content-type": "application/json" };
    const response = await request(`http://executor${path}`, {
      method: "POST",
      headers,
      body: JSON.stringify({ sha256 }),
      dispatcher,
    });
    const text = await response.body.text();
    if (response.statusCode !== 200)
      throw new Error(`the executor gave no quote over the evidence: ${response.statusCode}`);
    return answer.parse(JSON.parse(text));
  } finally {
    await dispatcher.close();
  }
}

async function listen(server: NetServer, port: number, log: Logger): Promise<number> {
  server.listen(port);
  await once(server, "listening");
  server.on("error", (error) => log.error({ err: error }, "a connection could not be accepted"));
  return (server.address() as AddressInfo).port;
}

type Connections = Pick<Server, "closeAllConnections" | "closeIdleConnections">;

/** Node takes a connection that has sent no request for a busy one. */
function connectionsOf(server: HttpsServer): Connections {
  const underWay = new Map<Socket, number>();
  const count = (socket: Socket, change: number): void =>
    void (socket.destroyed || underWay.set(socket, (underWay.get(socket) ?? 0) + change));
  server.on("secureConnection", (socket) => {
    count(socket, 0);
    socket.once("close", () => underWay.delete(socket));
  });
  server.on("request", ({ socket }, answer) => {
    count(socket, 1);
    answer.once("close", () => count(socket, -1));
  });
  return {
    closeAllConnections: () => server.closeAllConnections(),
    closeIdleConnections: () => {
      for (const [socket, requests] of underWay) if (requests === 0) socket.destroy();
    },
  };
}

/**
 * Accepts no more, and ends idle connections at once, others after `drainMs`. `requests` is the HTTP server of the
 * connections that `server` accepts.
 */
async function closed(server: NetServer, requests: Connections, drainMs = 0): Promise<void> {
  if (!server.listening) return;
  const done = once(server, "close");
  server.close();
  const sweep = setInterval(() => requests.closeIdleConnections(), SWEEP_MS);
  const cut = setTimeout(() => requests.closeAllConnections(), drainMs);
  await done;
  clearInterval(sweep);
  clearTimeout(cut);
}
