/**
 * A service with only the parts relevant to trust, all real: the executor's attestation over the guest-agent double,
 * the relayer's transparency routes over a real evidence folder, and a TLS endpoint with the evidence's certificate.
 * Each answer can be tampered with.
 */
import { createHash } from "node:crypto";
import { pinnedImages } from "../../client/verify/compose";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer as createHttpServer, type RequestListener, type Server } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rootStatementOf } from "../../executor/keys/rootIdentity";
import { attest, buildConfigDocument, openTee, type ConfigDocument, type TeeSource } from "../../executor/tee";
import type { TeeKind } from "../../protocol/attestation";
import { KeywrightError } from "../../protocol/errors";
import type { Address } from "../../protocol/ids";
import { PRICES, RUN_LIMITS } from "../../protocol/limits";
import { keyNamespaceOf } from "../../protocol/namespace";
import { EvidenceFolder } from "../../relayer/site/evidences";
import type { Executor } from "../../relayer/executor/client";
import { transparencyRoutes } from "../../relayer/routes/transparency";
import { deployAccountManager } from "../../scripts/deployment";
import type { TestChain } from "./chain";
import { generateEvidences, type Evidences } from "../../scripts/dev/tee/evidences";
import { startGuestAgentDouble, type GuestAgentDouble, type GuestAgentOptions } from "../../scripts/dev/tee/guestAgent";
import { defined } from "../../protocol/defined";

export const CHAIN_ID = 31337;
/** The key management of a service that says dstack. */
export const KEY_PROVIDER = { name: "kms", id: "3059ab" };
export const CONTRACT = "0x5FbDB2315678afecb367f032d93F642f64180aa3" as Address;

export interface ServiceOptions {
  /** The service's own claim; the quotes are the double's either way. */
  says?: TeeKind;
  secure?: boolean;
  agent?: Partial<GuestAgentOptions>;
}

export interface AttestedService {
  readonly baseUrl: string;
  readonly agent: GuestAgentDouble;
  readonly evidences: Evidences;
  readonly evidenceDir: string;
  readonly tee: TeeSource;
  readonly config: ConfigDocument;
  /** Changes the answer of a path (ignoring the query) from now on; several changes of one path are chained. */
  tamper(path: string, change: (body: string) => string): void;
  /** Answers a path with this status from now on. */
  refuse(path: string, status: number): void;
  honest(): void;
  /** Presents a TLS certificate other than the one in evidence. */
  presentAnotherCertificate(): Promise<string>;
  stop(): Promise<void>;
}

interface Tampering {
  changes: Map<string, ((body: string) => string)[]>;
  refusals: Map<string, number>;
}

export async function startAttestedService({
  says = "simulated",
  secure = true,
  agent: agentOptions,
}: ServiceOptions = {}): Promise<AttestedService> {
  const directory = await mkdtemp(join(tmpdir(), "attested-"));
  const agent = await startGuestAgentDouble({
    socketPath: join(directory, "agent.sock"),
    ...(says === "dstack" ? { keyProvider: KEY_PROVIDER } : {}),
    ...agentOptions,
  });
  const tee = openTee({ kind: "simulated", endpoint: agent.socketPath });
  const evidenceDir = join(directory, "evidences");
  const evidences = await generateEvidences({
    directory: evidenceDir,
    domain: "localhost",
    guestAgentSocket: agent.socketPath,
  });
  const tlsCertFile = join(directory, "tls.pem");
  await writeFile(tlsCertFile, evidences.certificatePem);
  const config = configDocument();
  const executor = executorOver(tee, says, config, secure ? tlsCertFile : undefined);
  const tampering: Tampering = { changes: new Map(), refusals: new Map() };
  const answer = answerer(executor, new EvidenceFolder(evidenceDir));
  const server = await listen(secure ? evidences : undefined, handler(answer, tampering));
  return {
    baseUrl: `${secure ? "https" : "http"}://localhost:${(server.address() as AddressInfo).port}`,
    agent,
    evidences,
    evidenceDir,
    tee,
    config,
    tamper: (path, change) => void tampering.changes.set(path, [...(tampering.changes.get(path) ?? []), change]),
    refuse: (path, status) => void tampering.refusals.set(path, status),
    honest: () => [tampering.changes, tampering.refusals].forEach((map) => map.clear()),
    presentAnotherCertificate: async () => {
      const other = await generateEvidences({
        directory: join(directory, "other"),
        domain: "localhost",
        guestAgentSocket: agent.socketPath,
      });
      (server as ReturnType<typeof createHttpsServer>).setSecureContext({
        cert: other.certificatePem,
        key: other.privateKeyPem,
      });
      return other.certificatePem;
    },
    stop: async () => {
      server.close();
      server.closeAllConnections();
      await tee.close();
      await agent.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** What the root of this service is: its contract, where a test deploys one, has this commitment. */
const ROOT = Buffer.alloc(32, 0x11);
const NAMESPACE = keyNamespaceOf(BigInt(CHAIN_ID), CONTRACT);
const STATEMENT_KEY = `0x${"ed".repeat(32)}`;
export const ROOT_STATEMENT = rootStatementOf(ROOT, NAMESPACE, STATEMENT_KEY);

export function configDocument(): ConfigDocument {
  return buildConfigDocument({
    serviceName: "Keywright",
    chainId: BigInt(CHAIN_ID),
    contractAddress: CONTRACT,
    keyNamespace: NAMESPACE,
    statementKey: STATEMENT_KEY,
    root: ROOT_STATEMENT,
    rpcUrls: ["https://user:secret@rpc.example/v2/api-key?token=secret"],
    rpcQuorum: 1,
    maxHeadAgeSeconds: 60,
    leaseConfirmations: 3,
    identityIssuers: [{ issuer: "https://id.example", jwksUrl: "https://id.example/jwks", audience: "keys" }],
    limits: RUN_LIMITS,
    prices: PRICES,
    features: { privateKeys: true },
    sandbox: { level: "full", missing: [] },
    packages: { [PACKAGE.name]: `sha512-${createHash("sha512").update(PACKAGE.content).digest("base64")}` },
  });
}

/** Puts an AccountManager with these terms at the address that the config document names. */
export async function giveContract(
  chain: TestChain,
  { payerDelaySeconds = 0, rootCommitment = ROOT_STATEMENT.commitment } = {},
): Promise<void> {
  const admin = await chain.deployer.getAddress();
  const { contract } = await deployAccountManager(chain.deployer, "test", { admin, payerDelaySeconds, rootCommitment });
  await chain.provider.send("anvil_setCode", [CONTRACT, await chain.provider.getCode(await contract.getAddress())]);
}

/** A file that the service serves and its config document names. */
export const PACKAGE = { name: "keywright-0.1.0.tgz", content: Buffer.from("a package") };

function executorOver(
  tee: TeeSource,
  says: TeeKind,
  config: ConfigDocument,
  tlsCertFile: string | undefined,
): Executor {
  const calls = {
    info: async () => ({
      tee: says,
      dstack: await tee.info(),
      rootCommitment: ROOT_STATEMENT.commitment,
      config,
      sandbox: { level: "full", missing: [] },
    }),
    attestation: (request: { nonce?: string }) => attest(tee, { config, ...defined({ tlsCertFile }) }, request),
  };
  return { call: (name: string, request: object) => calls[name as keyof typeof calls](request) } as unknown as Executor;
}

type Answerer = (url: URL) => Promise<{ type: string; body: Buffer }>;

function answerer(executor: Executor, folder: EvidenceFolder): Answerer {
  const routes = transparencyRoutes({ executor, evidences: folder });
  const call = (extra: object): never =>
    ({ requestId: "test", signal: new AbortController().signal, ...extra }) as never;
  const json = (value: unknown): { type: string; body: Buffer } => ({
    type: "application/json",
    body: Buffer.from(JSON.stringify(value)),
  });
  return async ({ pathname, searchParams }) => {
    if (pathname === "/info") return json(await routes.info(call({})));
    if (pathname === "/attestation")
      return json(await routes.attestation(call({ query: { nonce: searchParams.get("nonce") ?? undefined } })));
    if (pathname === "/core/v1/get_node_chain_config") return json(chainConfig());
    if (pathname === "/core/v1/limits") return json({ run: RUN_LIMITS, prices: PRICES });
    if (pathname === `/packages/${PACKAGE.name}`) return { type: "application/gzip", body: PACKAGE.content };
    const file = pathname.startsWith("/evidences/")
      ? await routes.evidence(call({ params: { file: pathname.slice("/evidences/".length) } }))
      : undefined;
    if (file === undefined) throw new KeywrightError("route_not_found", "no such route");
    return { type: file.contentType, body: Buffer.from(file.content) };
  };
}

const chainConfig = (): object => ({
  contract_address: CONTRACT,
  chain_id: CHAIN_ID,
  key_namespace: keyNamespaceOf(BigInt(CHAIN_ID), CONTRACT),
});

function handler(answer: Answerer, { changes, refusals }: Tampering): RequestListener {
  return (request, response) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    const refused = refusals.get(url.pathname);
    if (refused !== undefined) return void response.writeHead(refused).end("{}");
    answer(url).then(
      ({ type, body }) => {
        const changed = (changes.get(url.pathname) ?? []).reduce((text, change) => change(text), body.toString("utf8"));
        response.writeHead(200, { "content-type": type }).end(changed);
      },
      (error: unknown) => response.writeHead(error instanceof KeywrightError ? error.status : 500).end("{}"),
    );
  };
}

async function listen(certificate: Evidences | undefined, listener: RequestListener): Promise<Server> {
  const server =
    certificate === undefined
      ? createHttpServer(listener)
      : createHttpsServer({ cert: certificate.certificatePem, key: certificate.privateKeyPem }, listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server as Server;
}

export const readEvidence = (service: AttestedService, name: string): Promise<string> =>
  readFile(join(service.evidenceDir, name), "utf8");

/** How the simulated compose file runs the images: with the variables of their names, as a source's compose file. */
export const SOURCE_COMPOSE = ["relayer", "executor", "ingress"].reduce(
  (text, name) => `${text}  ${name}:\n    image: \${${name.toUpperCase()}_IMAGE}\n`,
  "services:\n",
);

/** The digests that the simulated compose file names for this source's services. */
export function imagesOf({ agent }: AttestedService): Record<string, string> {
  const images = pinnedImages(agent.appCompose);
  return Object.fromEntries(
    ["relayer", "executor", "ingress"].map((name) => [name, images.get(name)?.split("@")[1] ?? ""]),
  );
}
