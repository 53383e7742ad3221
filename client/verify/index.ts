/**
 * Verifies a running service from outside: what code runs, that it runs in a TEE, and that this connection ends there.
 * The same as `npm run verify -- <base url>`. For Node. What each step proves: docs/verify.md.
 */
import { randomBytes } from "node:crypto";
import { ClientError } from "../errors";
import { listFactsOf, type ListFacts } from "./allowlist";
import { get } from "./http";
import { collect, type Fetch, type Material } from "./material";
import { payerDelayOf, type PayerDelay } from "./payerDelay";
import { recording, recordingOf, replaying, type Recording } from "./recording";
import { collateralSchema, type Collateral } from "./signature";
import { endpointsFor, type Endpoints } from "./rpc";
import { KEY_PROVIDER_ID } from "./keyProvider";
import { runSteps, type Measurements } from "./steps";
import { clean, EXIT_CODES, type Outcome, type Report, type Step, type StepId } from "./types";
import { parseAddress } from "../../protocol/ids";
import { defined } from "../../protocol/defined";

export {
  STEPS,
  STEP_IDS,
  EXIT_CODES,
  type Outcome,
  type Report,
  type Step,
  type StepId,
  type StepStatus,
} from "./types";
export { arePublicKeysAttested } from "./publicKeys";
export { verifyReceipt, type ReceiptClaims, type ReceiptSubjects } from "./receipt";
export { verifyTriggerStatement, type MintedFor } from "./trigger";
export { type Recording } from "./recording";
export { type Collateral } from "./signature";
export { type Measurements } from "./steps";

export interface VerifyOptions {
  /**
   * RPC endpoints for the contracts' chain that you trust: each alone is believed, the next is asked when one fails.
   * Without them public endpoints of the chain are asked, of which two must agree; of other chains nothing is read.
   */
  readonly rpcUrl?: string | readonly string[];
  /** Address of the allow-list contract; default: the measured application id. */
  readonly allowlist?: string;
  /** Address of the account contract that you expect the service to act for: its keys belong to it. */
  readonly contract?: string;
  /** Expected measurements of the machine image. Without it the image is not checked. */
  readonly measurements?: Measurements;
  /** Expected id of dstack's key management: hex of its root's public key. Without it the id is shown, not checked. */
  readonly keyProvider?: string;
  /**
   * Service of the compose file → digest (`sha256:…`) just built from the source. Without it the images' contents are
   * not checked.
   */
  readonly builtImages?: Readonly<Record<string, string>>;
  /** Text of the same source's compose.yaml: how its images must run. Needed with `builtImages`. */
  readonly composeFile?: string;
  /** Intel's collateral instead of fetching it: in the form of `getCollateral` of @phala/dcap-qvl. */
  readonly collateral?: unknown;
  /** Where to fetch collateral; default: the library's public service. */
  readonly pccsUrl?: string;
  /** TCB states to accept besides UpToDate, for example SWHardeningNeeded. */
  readonly acceptTcb?: readonly string[];
  /** PEM of certificate authorities to trust for TLS instead of the system's. */
  readonly ca?: string;
  /**
   * DER of a root to trust instead of Intel's: for tests. The outcome of a simulated service is `simulated` under any
   * root.
   */
  readonly trustedRoot?: Buffer;
  /** 16 to 32 bytes; default: 32 random ones. */
  readonly nonce?: Buffer;
  /** Per request, in milliseconds; default 15,000. */
  readonly timeoutMs?: number;
  /** Unix seconds at which certificates and collateral must be valid; default now. */
  readonly nowSeconds?: number;
}

const DEFAULT_TIMEOUT_MS = 15_000;

/**
 * Fetches the service's evidence and checks it. Every answer of the service yields a report.
 * @throws ClientError `invalid_argument` for a base URL or endpoint that is not http(s), or an invalid nonce length,
 * collateral, contract, measurements or id of the key management.
 */
export async function verifyService(baseUrl: string, options: VerifyOptions = {}): Promise<Report> {
  return (await verified(baseOf(baseUrl), options.nonce ?? randomBytes(32), options, get)).report;
}

export interface Verified {
  readonly report: Report;
  /**
   * The config document, for `verifyReceipt` and the like: only where the steps "Quote signature and TCB", "Freshness"
   * and "Config document" have passed, or the outcome is `simulated`. Without a genuine quote anyone could have written
   * it.
   */
  readonly config: Readonly<Record<string, unknown>> | undefined;
}

/** As `verifyService`, with the evidence for a file: `verifyEvidence` checks it again without the service. */
export async function recordService(
  baseUrl: string,
  options: VerifyOptions = {},
): Promise<Verified & { readonly evidence: Recording }> {
  const url = baseOf(baseUrl);
  const nonce = options.nonce ?? randomBytes(32);
  const { fetch, recorded } = recording(url, nonce);
  return { ...attested(await verified(url, nonce, options, fetch)), evidence: recorded };
}

/**
 * Checks recorded evidence as `verifyService` checks a service. Whoever kept it may have changed the service's address
 * in it: what it is evidence of is the attested contract (`contract`). Offline if collateral is given.
 * @throws ClientError `invalid_argument` also for anything that is no recorded evidence.
 */
export async function verifyEvidence(evidence: unknown, options: Omit<VerifyOptions, "nonce"> = {}): Promise<Verified> {
  const kept = recordingOf(evidence);
  const nonce = Buffer.from(kept.nonce, "hex");
  return attested(await verified(baseOf(kept.base_url), nonce, { ...options, isRecorded: true }, replaying(kept)));
}

/** `isRecorded`: there is no connection, and public endpoints are not asked. */
type Settings = VerifyOptions & { readonly isRecorded?: boolean };
interface Judged {
  readonly report: Report;
  readonly material: Material;
}

function attested({ report, material }: Judged): Verified {
  const { steps, outcome } = report;
  return { report, config: isAttested(steps, outcome === "simulated") ? material.info().config : undefined };
}

/**
 * Whether a genuine quote covers the config document. That of a simulated service needs no signature: the service says
 * itself that nobody vouches for it.
 */
const isAttested = (steps: readonly Step[], isSimulated: boolean): boolean =>
  hasPassed(steps, "config") && (isSimulated || (hasPassed(steps, "signature") && hasPassed(steps, "freshness")));

const hasPassed = (steps: readonly Step[], step: StepId): boolean =>
  steps.some(({ id, status }) => id === step && status === "passed");

async function verified(url: URL, nonce: Buffer, options: Settings, fetch: Fetch): Promise<Judged> {
  if (nonce.length < 16 || nonce.length > 32) throw new ClientError("invalid_argument", "the nonce has 16 to 32 bytes");
  const collateral = options.collateral === undefined ? undefined : collateralOf(options.collateral);
  requireForm(options);
  const timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  const material = await collect(url, { nonce, timeoutMs, fetch, ...defined({ ca: options.ca }) });
  const { collateral: _, ...rest } = options;
  const endpoints = endpointsOf(options, material, timeoutMs);
  const nowSeconds = options.nowSeconds ?? Math.floor(Date.now() / 1000);
  const steps = await runSteps(material, {
    ...rest,
    ...defined({ collateral, endpoints }),
    nonce,
    timeoutMs,
    nowSeconds,
  });
  const tee = teeOf(material);
  const outcome = outcomeOf(tee, steps);
  const judged = await judgedOf(material, steps, isAttested(steps, tee === "simulated"), {
    delay: () => payerDelayOf(material, endpoints),
    list: async () => (endpoints === undefined ? {} : listFacts(material, endpoints, { ...options, nowSeconds })),
  });
  const isRecorded = options.isRecorded === true;
  const verdict = { tee, steps, outcome, exitCode: EXIT_CODES[outcome] };
  return { material, report: { baseUrl: url.origin, isRecorded, ...verdict, ...judged } };
}

function endpointsOf({ rpcUrl, isRecorded }: Settings, material: Material, timeoutMs: number): Endpoints | undefined {
  const own = rpcUrl === undefined ? [] : [rpcUrl].flat();
  const wrong = own.find((url) => !URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol));
  if (wrong !== undefined) throw new ClientError("invalid_argument", `"${clean(wrong)}" is not an http(s) URL`);
  return endpointsFor(own, isRecorded === true ? undefined : chainIdOf(material), timeoutMs);
}

/** Untrusted: it only chooses which public endpoints are asked, and each must be of the contract's chain. */
function chainIdOf(material: Material): number | undefined {
  try {
    return material.chainConfig().chain_id;
  } catch {
    return undefined;
  }
}

function baseOf(text: string): URL {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw new ClientError("invalid_argument", `"${clean(text)}" is not an http(s) URL`);
  return new URL(new URL(text).origin);
}

function collateralOf(value: unknown): Collateral {
  const parsed = collateralSchema.safeParse(value);
  if (!parsed.success)
    throw new ClientError(
      "invalid_argument",
      `the collateral has the wrong form at ${parsed.error.issues[0]?.path.join(".") || "its top"}`,
    );
  return parsed.data;
}

function requireForm({ measurements, keyProvider, contract }: VerifyOptions): void {
  if (contract !== undefined && parseAddress(contract) === undefined)
    throw new ClientError("invalid_argument", "the contract must be an address");
  for (const name of measurements === undefined ? [] : (["mrtd", "rtmr0", "rtmr1", "rtmr2"] as const)) {
    if (!/^[0-9a-fA-F]{96}$/.test(measurements?.[name] ?? ""))
      throw new ClientError("invalid_argument", `the measurement ${name} must be 48 bytes of hex`);
  }
  if (keyProvider !== undefined && !KEY_PROVIDER_ID.test(keyProvider))
    throw new ClientError("invalid_argument", "the id of the key management must be hex");
}

function teeOf(material: Material): Report["tee"] {
  try {
    const { tee } = material.info();
    return tee === "dstack" || tee === "simulated" || tee === "none" ? tee : "unknown";
  } catch {
    return "unknown";
  }
}

/** A failed step decides first, then the service's own `tee` claim; verified only when every step passed. */
function outcomeOf(tee: Report["tee"], steps: readonly Step[]): Outcome {
  if (steps.some(({ status }) => status === "failed")) return "failed";
  if (tee === "simulated") return "simulated";
  return tee === "dstack" && steps.every(({ status }) => status === "passed") ? "verified" : "incomplete";
}

/** Empty unless the config document, which names the contract, is attested (`isTold`): anyone could have written it. */
async function judgedOf(
  material: Material,
  steps: readonly Step[],
  isTold: boolean,
  ask: { readonly delay: () => Promise<PayerDelay>; readonly list: () => Promise<ListFacts> },
): Promise<Pick<Report, "contract" | "notes" | "warnings">> {
  if (!isTold) return { notes: [], warnings: [] };
  const asked = [await ask.delay()];
  // Only then is the application id, which names the list, the measured one.
  if (hasPassed(steps, "composeHash") && hasPassed(steps, "allowlist")) asked.push(await ask.list());
  return {
    contract: material.chainConfig().contract_address,
    notes: [...notesOf(material), ...asked.flatMap(({ note }) => note ?? [])],
    warnings: asked.flatMap(({ warning }) => warning ?? []),
  };
}

function listFacts(
  material: Material,
  endpoints: Endpoints,
  { allowlist, nowSeconds }: { readonly allowlist?: string; readonly nowSeconds: number },
): Promise<ListFacts> {
  const { app_id: appId = "", compose_hash: hash = "" } = material.info();
  const contract = allowlist ?? `0x${appId}`;
  const { chain_id: chainId } = material.chainConfig();
  return listFactsOf({ endpoints, chainId, contract }, `0x${hash.toLowerCase()}`, nowSeconds);
}

/** Notes from the attested config document. */
function notesOf(material: Material): string[] {
  const { sandbox, rpc, features } = material.info().config as Record<string, Record<string, unknown> | undefined>;
  const shown = (value: unknown): string => clean(JSON.stringify(value) ?? "not stated");
  return [
    `sandbox level: ${shown(sandbox?.level)}; barriers missing: ${shown(sandbox?.missing)}`,
    `chain read from ${shown(rpc?.hosts)}, of which ${shown(rpc?.quorum)} must agree; oldest head accepted: ` +
      `${shown(rpc?.max_head_age_seconds)} s (0 = not checked)`,
    `feature switches: ${shown(features)}`,
  ];
}
