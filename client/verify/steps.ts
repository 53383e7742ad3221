/**
 * The steps of a verification. Each checks one subject; it takes other steps' subjects as given, or reports that it
 * could not check.
 */
import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import { composeHash, configDigest, NO_LEAF, reportDataOf } from "../../protocol/attestation";
import { parseAddress } from "../../protocol/ids";
import { keyNamespaceOf } from "../../protocol/namespace";
import { askAllowlist } from "./allowlist";
import { applicationOf, imagesOf, pinnedImages } from "./compose";
import { checkServices } from "./composeServices";
import { parseEventLog, replayAgainst, singleEvent, type ReplayedLog } from "./eventLog";
import { acmeAccountOf, leafOf, parseChecksums, quoteFileOf } from "./files";
import { certificatesOf, lazily, packagesSchema, Unavailable, type Lazy, type Material } from "./material";
import { readQuote, type QuoteFacts } from "./quote";
import { checkProvider } from "./keyProvider";
import { checkRoot } from "./rootKey";
import type { Endpoints } from "./rpc";
import { NoCollateral, verifySignature, type SignatureOptions } from "./signature";
import {
  failed,
  Malformed,
  notChecked,
  passed,
  STEP_IDS,
  STEPS,
  type Step,
  type StepId,
  type StepResult,
} from "./types";
import { defined } from "../../protocol/defined";

export interface StepOptions extends SignatureOptions {
  readonly nonce: Buffer;
  /** RPC endpoints of the contracts' chain. */
  readonly endpoints?: Endpoints;
  /** The account contract that the user expects. */
  readonly contract?: string;
  /** From a file: there is no connection. */
  readonly isRecorded?: boolean;
  /** The allow-list contract; by default the application id, which in dstack is its address. */
  readonly allowlist?: string;
  readonly measurements?: Measurements;
  /** Id of the key management that may give the keys. */
  readonly keyProvider?: string;
  /** Service of the compose file → digest (`sha256:…`) of the image that the source builds. */
  readonly builtImages?: Readonly<Record<string, string>>;
  /** Text of the source's own compose file. */
  readonly composeFile?: string;
}

/** Measurements of a machine image's firmware, kernel and root file system: hex of 48 bytes each. */
export interface Measurements {
  readonly mrtd: string;
  readonly rtmr0: string;
  readonly rtmr1: string;
  readonly rtmr2: string;
}

/** Inputs shared by the steps, read once. */
interface Subjects {
  readonly material: Material;
  readonly options: StepOptions;
  readonly quote: Lazy<QuoteFacts>;
  /** The digests that, beside the nonce, the report data should cover. */
  readonly bound: Lazy<{ config: Buffer; leaf: Buffer }>;
  /** Throws unless the quote covers the nonce and the two digests. */
  readonly fresh: Lazy<void>;
  readonly log: Lazy<ReplayedLog>;
  readonly appCompose: Lazy<string>;
}

type Check = (subjects: Subjects) => string | Promise<string>;

const CHECKS: Readonly<Record<StepId, Check>> = {
  signature: checkSignature,
  machineImage: checkMachineImage,
  freshness: checkFreshness,
  config: checkConfig,
  eventLog: checkEventLog,
  composeHash: checkComposeHash,
  keyProvider: checkKeyProvider,
  allowlist: checkAllowlist,
  images: checkImages,
  imageContents: checkImageContents,
  packages: checkPackages,
  evidenceQuote: checkEvidenceQuote,
  evidenceFiles: checkEvidenceFiles,
  tlsLeaf: checkTlsLeaf,
  keyNamespace: checkKeyNamespace,
  rootKey: checkRootKey,
};

export async function runSteps(material: Material, options: StepOptions): Promise<Step[]> {
  const subjects = subjectsOf(material, options);
  const steps: Step[] = [];
  for (const id of STEP_IDS) steps.push({ id, title: STEPS[id], ...(await resultOf(() => CHECKS[id](subjects))) });
  return steps;
}

async function resultOf(check: () => string | Promise<string>): Promise<StepResult> {
  try {
    return passed(await check());
  } catch (error) {
    if (error instanceof Malformed) return failed(error.message);
    if (error instanceof Unavailable || error instanceof NoCollateral) return notChecked(error.message);
    // An unexpected error counts as a failure of the step.
    return failed(`the check itself failed: ${error instanceof Error ? error.message : "unknown reason"}`);
  }
}

function subjectsOf(material: Material, options: StepOptions): Subjects {
  const { info, attestation } = material;
  const quote = lazily(() => readQuote(attestation().quote));
  const bound = lazily(() => boundDigests(material));
  const fresh = lazily(() => {
    const { config, leaf } = bound();
    const expected = reportDataOf(options.nonce, leaf, config);
    if (!quote().reportData.equals(expected))
      throw new Malformed("the quote does not cover the nonce sent: it was not made for this question");
  });
  const log = lazily(() =>
    replayAgainst(parseEventLog(attestation().event_log), needed(quote, "the quote cannot be read").rtmrs),
  );
  const appCompose = lazily(() => {
    const text = info().tcb_info?.app_compose;
    if (text === undefined) throw new Unavailable("/info shows no app_compose");
    return text;
  });
  return { material, options, quote, bound, fresh, log, appCompose };
}

/** As stated by the service, untrusted until the report data confirms them; computed locally when not stated. */
function boundDigests({ info, attestation, leaf, secure }: Material): { config: Buffer; leaf: Buffer } {
  const stated = attestation();
  const config =
    stated.config_sha256 === undefined ? configDigest(info().config) : Buffer.from(stated.config_sha256, "hex");
  if (stated.tls_leaf_sha256 !== undefined) return { config, leaf: Buffer.from(stated.tls_leaf_sha256, "hex") };
  return { config, leaf: secure ? sha256(leaf()) : NO_LEAF };
}

/** This subject is another step's to verify: where it is invalid, this step is not checked. */
function needed<T>(subject: Lazy<T>, otherwise: string): T {
  try {
    return subject();
  } catch (error) {
    throw error instanceof Malformed ? new Unavailable(otherwise) : error;
  }
}

async function checkSignature({ material, options, quote }: Subjects): Promise<string> {
  const { tee } = material.info();
  if (tee === "none") throw new Malformed("the service states that it runs without a TEE: there is nothing to verify");
  const facts = quote();
  if (tee === "simulated" && options.trustedRoot === undefined)
    throw new Unavailable("SIMULATED: the service states that its quotes are simulated; no hardware signed them");
  return (
    `signed under ${options.trustedRoot === undefined ? "Intel's root" : "the given root"}, TCB ` +
    `${await verifySignature(facts, options)}`
  );
}

/** Register 3 is written by the guest's own system, so its log is only as trustworthy as the machine image. */
function checkMachineImage({ options, quote }: Subjects): string {
  const { mrtd, rtmrs } = needed(quote, "the quote cannot be read");
  const quoted = { mrtd, rtmr0: rtmrs[0], rtmr1: rtmrs[1], rtmr2: rtmrs[2] };
  const { measurements } = options;
  if (measurements === undefined)
    throw new Unavailable(
      `no measurements given to compare with (--measurements); MRTD ${mrtd.toString("hex").slice(0, 16)}…`,
    );
  const wrong = (Object.keys(quoted) as (keyof Measurements)[]).find(
    (name) => quoted[name].toString("hex") !== measurements[name].toLowerCase(),
  );
  if (wrong !== undefined)
    throw new Malformed(`${wrong.toUpperCase()} of the quote is not that of the expected machine image`);
  return "MRTD and registers 0 to 2 are those of the expected machine image";
}

function checkFreshness({ quote, fresh }: Subjects): string {
  needed(quote, "the quote cannot be read");
  fresh();
  return "the quote covers the nonce sent";
}

function checkConfig({ material, options, bound, fresh }: Subjects): string {
  needed(fresh, "the quote covers no config document for this nonce");
  const { config } = material.info();
  if (!configDigest(config).equals(bound().config))
    throw new Malformed("the config document of /info is not the one the quote covers");
  const chain = material.chainConfig();
  if (config.contract_address !== chain.contract_address || config.chain_id !== chain.chain_id) {
    throw new Malformed("the contract or chain of get_node_chain_config is not the attested one");
  }
  if (options.contract !== undefined && parseAddress(options.contract) !== chain.contract_address)
    throw new Malformed(`the attested contract is ${chain.contract_address}, not the one expected`);
  const { prices, run } = material.limits();
  if (!sameJson(config.prices, prices) || !sameJson(config.limits, run))
    throw new Malformed("the limits or prices the service states are not the attested ones");
  return `covered by the quote; contract ${chain.contract_address} on chain ${chain.chain_id}`;
}

function checkEventLog({ quote, log }: Subjects): string {
  needed(quote, "the quote cannot be read");
  return `${log().runtimeEvents.length} run-time events explain register 3`;
}

function checkComposeHash({ material, log, appCompose }: Subjects): string {
  const { runtimeEvents } = needed(log, "the event log does not replay");
  const measured = singleEvent(runtimeEvents, "compose-hash").toString("hex");
  if (composeHash(appCompose()) !== measured) throw new Malformed("app_compose of /info is not what was measured");
  const { compose_hash, app_id } = material.info();
  if (compose_hash?.toLowerCase() !== measured) throw new Malformed("compose_hash of /info is not the measured one");
  if (app_id?.toLowerCase() !== singleEvent(runtimeEvents, "app-id").toString("hex"))
    throw new Malformed("app_id of /info is not the measured one");
  return measured;
}

function checkKeyProvider({ material, log, options }: Subjects): string {
  const { runtimeEvents } = needed(log, "the event log does not replay");
  return checkProvider(singleEvent(runtimeEvents, "key-provider"), material.info().tee, options.keyProvider);
}

async function checkAllowlist({ material, options, log }: Subjects): Promise<string> {
  const { runtimeEvents } = needed(log, "the event log does not replay");
  if (options.endpoints === undefined)
    throw new Unavailable("no RPC endpoint given to ask the allow-list contract (--rpc)");
  const [appId, hash, instanceId] = ["app-id", "compose-hash", "instance-id"].map((name) =>
    singleEvent(runtimeEvents, name),
  ) as [Buffer, Buffer, Buffer];
  if (appId.length !== 20 || hash.length !== 32 || instanceId.length !== 20)
    throw new Malformed("app-id, compose-hash or instance-id has the wrong length");
  const contract = parseAddress(options.allowlist ?? `0x${appId.toString("hex")}`);
  if (contract === undefined) throw new Malformed("the allow-list's address is no address");
  const { device_id } = material.info();
  const facts = { appId, composeHash: hash, instanceId, ...defined({ deviceId: device_id }) };
  const { chain_id: chainId } = material.chainConfig();
  await askAllowlist({ endpoints: options.endpoints, chainId, contract }, facts);
  return `allowed by ${contract}${options.endpoints.agreeing > 1 ? ", as public RPC endpoints say" : ""}`;
}

function checkImages({ appCompose }: Subjects): string {
  return `${pinnedImages(appCompose()).size} images, each named by digest`;
}

/**
 * Source → digest → compose hash → quote: the measured compose file names the images just built from the source, and
 * runs them as the source's does.
 */
function checkImageContents({ appCompose, log, options }: Subjects): string {
  const { builtImages, composeFile } = options;
  if (builtImages === undefined) throw new Unavailable("nothing was built to compare with (--source <folder>)");
  const measured = singleEvent(needed(log, "the event log does not replay").runtimeEvents, "compose-hash").toString(
    "hex",
  );
  if (composeHash(appCompose()) !== measured) throw new Unavailable("app_compose is not what was measured");
  const application = needed(
    lazily(() => applicationOf(appCompose())),
    "digests alone do not fix the application's code",
  );
  const images = needed(
    lazily(() => imagesOf(application.compose)),
    "not every image is named by digest",
  );
  for (const [name, digest] of Object.entries(builtImages)) {
    const image = images.get(name);
    if (image === undefined) throw new Malformed(`the compose file has no service "${name}", which the source builds`);
    if (!image.endsWith(`@${digest}`))
      throw new Malformed(`the service "${name}" runs ${image.slice(-71)}, but the source builds ${digest}`);
  }
  if (composeFile === undefined)
    throw new Unavailable("no compose file of the source given to compare how its images run (--compose)");
  const others = checkServices(application, composeFile, Object.keys(builtImages));
  const rest = others.length === 0 ? "" : `; not of this source: ${others.join(", ")}`;
  return `${Object.keys(builtImages).join(" and ")} are what the source builds, run as it says${rest}`;
}

/** What users install is what the quote covers. */
function checkPackages({ material, bound, fresh }: Subjects): string {
  const { config } = material.info();
  needed(fresh, "the quote covers no config document for this nonce");
  if (!configDigest(config).equals(bound().config)) throw new Unavailable("the config document is not attested");
  if (config.packages === undefined) throw new Unavailable("the config document names no packages");
  const named = packagesSchema.safeParse(config.packages);
  if (!named.success) throw new Malformed("packages of the config document has the wrong form");
  const served = material.packages();
  for (const [name, integrity] of Object.entries(named.data)) {
    const bytes = served.get(name)?.() ?? Buffer.alloc(0);
    if (`sha512-${createHash("sha512").update(bytes).digest().toString("base64")}` !== integrity)
      throw new Malformed(`/packages/${name} is not the package that the quote covers`);
  }
  return Object.entries(named.data)
    .map(([name, integrity]) => `${name} ${integrity}`)
    .join(", ");
}

async function checkEvidenceQuote({ material, options, quote, log }: Subjects): Promise<string> {
  const file = quoteFileOf(material.quoteFile());
  const evidence = readQuote(file.quote);
  const covered = evidence.reportData.subarray(0, 32);
  if (!covered.equals(sha256(material.checksums())))
    throw new Malformed("the quote of quote.json does not cover sha256sum.txt");
  const live = needed(quote, "the quote of /attestation cannot be read");
  if (!measuresTheSame(evidence, live))
    throw new Malformed("quote.json was made by another machine image than the one answering");
  if (!evidence.rtmrs[3].equals(live.rtmrs[3]))
    sameApplication(file.event_log, evidence, needed(log, "the event log does not replay"));
  if (material.info().tee === "simulated" && options.trustedRoot === undefined)
    return "covers sha256sum.txt (SIMULATED: no hardware signed it)";
  return `covers sha256sum.txt, TCB ${await verifySignature(evidence, options)}`;
}

function measuresTheSame(one: QuoteFacts, other: QuoteFacts): boolean {
  return (
    one.mrtd.equals(other.mrtd) &&
    [0, 1, 2].every((index) => one.rtmrs[index]?.equals(other.rtmrs[index] ?? Buffer.alloc(0)))
  );
}

/**
 * Register 3 changes when the application adds events, so compare the application and code in the evidence's own log.
 */
function sameApplication(eventLog: string | undefined, evidence: QuoteFacts, live: ReplayedLog): void {
  const own = replayAgainst(parseEventLog(eventLog ?? "[]"), evidence.rtmrs);
  for (const name of ["app-id", "compose-hash"]) {
    if (!singleEvent(own.runtimeEvents, name).equals(singleEvent(live.runtimeEvents, name)))
      throw new Malformed(`quote.json was made by an application with another ${name}`);
  }
}

function checkEvidenceFiles({ material }: Subjects): string {
  const sums = parseChecksums(material.checksums());
  const files = material.files();
  for (const [name, sum] of sums) {
    if (sha256(files.get(name)?.() ?? Buffer.alloc(0)).toString("hex") !== sum)
      throw new Malformed(`${name} does not have the checksum of sha256sum.txt`);
  }
  const certificates = certificatesOf(material);
  if (certificates.length === 0) throw new Malformed("sha256sum.txt names no certificate (cert-<domain>.pem)");
  for (const name of certificates) leafOf(files.get(name)?.() ?? Buffer.alloc(0), name);
  const account = files.get("acme-account.json");
  if (account === undefined) throw new Malformed("sha256sum.txt does not name acme-account.json");
  return `${sums.size} files as listed; certificate authority's account ${acmeAccountOf(account())}`;
}

function checkTlsLeaf({ material, options, bound, fresh }: Subjects): string {
  if (options.isRecorded === true) throw new Unavailable("recorded: there is no connection");
  if (!material.secure)
    throw new Unavailable("plain HTTP has no certificate: any machine on the path could have answered");
  needed(fresh, "the quote covers no certificate for this nonce");
  const leaf = sha256(material.leaf());
  if (bound().leaf.equals(NO_LEAF))
    throw new Malformed("the quote covers no certificate: TLS may terminate outside the TEE");
  if (!bound().leaf.equals(leaf))
    throw new Malformed(
      "the certificate of this connection is not the one the quote covers: something terminates TLS in between",
    );
  const files = needed(material.files, "sha256sum.txt cannot be read");
  const known = certificatesOf(material).some((name) =>
    sha256(leafOf(files.get(name)?.() ?? Buffer.alloc(0), name)).equals(leaf),
  );
  if (!known) throw new Malformed("the certificate of this connection is not among the evidence files");
  return `SHA-256 ${leaf.toString("hex")}`;
}

function checkKeyNamespace({ material }: Subjects): string {
  const { chain_id, contract_address, key_namespace } = material.chainConfig();
  const computed = keyNamespaceOf(BigInt(chain_id), contract_address);
  if (computed !== key_namespace) throw new Malformed("key_namespace is not that of the stated chain and contract");
  if (material.info().config.key_namespace !== computed)
    throw new Malformed("the attested key namespace is not that of the stated chain and contract");
  return computed;
}

async function checkRootKey({ material, options, bound, fresh }: Subjects): Promise<string> {
  needed(fresh, "the quote covers no config document for this nonce");
  if (!configDigest(material.info().config).equals(bound().config))
    throw new Unavailable("the config document is not attested");
  return checkRoot(material, options.endpoints);
}

function sameJson(one: unknown, other: unknown): boolean {
  return canonicalize(one) === canonicalize(other);
}

const sha256 = (bytes: Buffer): Buffer => createHash("sha256").update(bytes).digest();
