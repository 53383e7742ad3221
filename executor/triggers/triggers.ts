/**
 * Triggers in the keyholder. A trigger's usage key is derived from the account and from all of its definition, so
 * whoever changes code, params, schedule, filter or secret has another key, which no contract knows. It never leaves:
 * firing it takes the sealed definition and a cause that holds here.
 */
import { createHash, createHmac, randomBytes } from "node:crypto";
import canonicalize from "canonicalize";
import { parseCid } from "../../protocol/cid";
import { defined } from "../../protocol/defined";
import { KeywrightError } from "../../protocol/errors";
import type { ExecutorAnswer, ExecutorRequest, TriggerCredential } from "../../protocol/executor";
import {
  PathKind,
  derivationPath,
  keyIdOf,
  type AccountId,
  type Address,
  type ApiKey,
  type KeyId,
} from "../../protocol/ids";
import type { Cid } from "../../protocol/ids";
import { parseJson } from "../../protocol/json";
import {
  TRIGGER_STATEMENT_TYPE,
  definitionSchema,
  type Definition,
  type HookSettings,
  type Settings,
} from "../../protocol/trigger";
import type { Keyring } from "../keys/keyring";
import { addressOf } from "../keys/secp256k1";
import type { StatementKey } from "../keys/statementKey";
import { checkCause, type CauseParts, type Checked } from "./causes";
import { verifyHook } from "./hooks";
import { Once } from "./once";
import { seal, unseal } from "./seal";

export interface TriggersParts extends CauseParts {
  readonly keyring: Keyring;
  readonly statementKey: StatementKey;
  readonly paramsBytes: number;
}

/** A trigger that may fire now. */
export interface Firing extends Checked {
  readonly keyId: KeyId;
  readonly accountId: AccountId;
  readonly cid: Cid;
  /** JSON text: what the action receives. */
  readonly params: string;
  readonly triggerId: string;
  /** Nobody waits for its end. */
  readonly isUnattended: boolean;
  /** Call when the run begins. @throws KeywrightError `already_ran`. */
  begin(): void;
  /** Nothing ran after all. */
  cameToNothing(): void;
}

const PATH_RANDOM_BYTES = 15;

export class Triggers {
  readonly #parts: TriggersParts;
  readonly #once = new Once();

  constructor(parts: TriggersParts) {
    this.#parts = parts;
  }

  /** @throws KeywrightError `invalid_cid`, `invalid_value`, `params_too_large`. */
  mint({ accountId, attempt, cid, params, settings }: ExecutorRequest<"mintTrigger">): ExecutorAnswer<"mintTrigger"> {
    const account = accountId.toLowerCase() as AccountId;
    const seed = attempt === undefined ? randomBytes(32) : Buffer.from(attempt, "hex");
    const { complete, hookSecret } = withSecret(settings, this.#hookSecretOf(account, seed));
    const definition = this.#valid({
      v: 1,
      id: createHmac("sha256", seed).update("id").digest("hex").slice(0, 32),
      cid: requireCid(cid),
      params,
      settings: complete,
    });
    const digest = digestOf(definition);
    const { keyId, walletAddress } = this.#keyOf(account, digest);
    return {
      triggerId: definition.id,
      apiKeyHash: keyId,
      walletAddress,
      derivationPath: derivationPath(PathKind.usageKey, digest.subarray(0, PATH_RANDOM_BYTES), account),
      sealed: seal(this.#parts.keyring, "definition", account, definition),
      paramsSha256: sha256(params),
      statement: this.#statement(account, keyId, definition),
      ...defined({ hookSecret }),
    };
  }

  /** @throws KeywrightError `trigger_not_found`, `invalid_webhook_signature`, `malformed_json`, `invalid_body`. */
  acceptHook({ accountId, sealed, body, headers }: ExecutorRequest<"acceptHook">): ExecutorAnswer<"acceptHook"> {
    const account = accountId.toLowerCase() as AccountId;
    const definition = this.#open(account, sealed);
    const { settings } = definition;
    if (!("hook" in settings)) throw new KeywrightError("trigger_not_found", "This trigger is no hook.");
    const bytes = Buffer.from(body, "base64");
    const nowMs = this.#parts.nowMs();
    const key =
      verifyHook(settings.hook, { body: bytes, headers }, Math.floor(nowMs / 1_000)) ?? randomBytes(16).toString("hex");
    const value = objectIn(bytes);
    // Another definition with the same id, which checks less, accepts nothing for this one.
    const { keyId } = this.#keyOf(account, digestOf(definition));
    const accepted = { trigger: keyId, key, atSeconds: nowMs / 1_000, body: value };
    return { accepted: seal(this.#parts.keyring, "accepted hook", account, accepted), key };
  }

  /**
   * What may run now under which key. The contract then decides about the key as about any other.
   * @throws KeywrightError `trigger_not_found`, `trigger_not_due`, `log_not_found`, `already_ran`, `params_too_large`,
   * `chain_unavailable`; for a run by hand also the refusals of its credential.
   */
  async admit({ accountId, sealed, cause }: TriggerCredential): Promise<Firing> {
    const account = accountId.toLowerCase() as AccountId;
    const definition = this.#open(account, sealed);
    const { keyId } = this.#keyOf(account, digestOf(definition));
    const checked = await checkCause(this.#parts, { account, definition, keyId, cause });
    const name = `${keyId} ${checked.causeKey}`;
    if (this.#once.has(name, checked.atMs)) throw hasFired();
    return {
      ...checked,
      keyId,
      accountId: account,
      cid: definition.cid as Cid,
      params: this.#params(definition, checked),
      triggerId: definition.id,
      isUnattended: cause.type !== "manual",
      begin: () => {
        if (!this.#once.begin(name, checked.atMs)) throw hasFired();
      },
      cameToNothing: () => this.#once.forget(name),
    };
  }

  /** The same for a repeated request, whose name the relayer knows: not to be had without this keyholder's root. */
  #hookSecretOf(account: AccountId, seed: Buffer): Buffer {
    return this.#parts.keyring.withTriggerSeal(account, (key) =>
      createHmac("sha256", key).update("hook secret v1\n").update(seed).digest(),
    );
  }

  /** The owner's params win over those of a hook's body, which a stranger may have written. */
  #params({ id, params, settings }: Definition, { given, body }: Checked): string {
    const fixed = parseJson(params) as object;
    const kind = Object.keys(settings)[0];
    const text = JSON.stringify(withOwn(body, fixed, { trigger: { id, kind, ...given } }));
    this.#requireSize(text);
    return text;
  }

  #valid(definition: Definition): Definition {
    this.#requireSize(definition.params);
    const params = parseJson(definition.params);
    if (typeof params !== "object" || params === null || Array.isArray(params))
      throw new KeywrightError("invalid_value", "params must be a JSON object.");
    const checked = definitionSchema.safeParse(definition);
    const { settings } = definition;
    if ("event" in settings && settings.event.chain_id !== undefined)
      this.#parts.logs.requireChain(settings.event.chain_id);
    if (checked.success) return checked.data;
    throw new KeywrightError("invalid_value", checked.error.issues.map(({ message }) => message).join("; "));
  }

  #requireSize(params: string): void {
    const bytes = Buffer.byteLength(params, "utf8");
    if (bytes > this.#parts.paramsBytes)
      throw new KeywrightError(
        "params_too_large",
        `The params are ${bytes} bytes; at most ${this.#parts.paramsBytes} are accepted.`,
      );
  }

  #open(account: AccountId, sealed: string): Definition {
    const opened = definitionSchema.safeParse(unseal(this.#parts.keyring, "definition", account, sealed));
    if (opened.success) return opened.data;
    throw new KeywrightError("trigger_not_found", "This is no trigger of the account.");
  }

  #keyOf(account: AccountId, digest: Buffer): { keyId: KeyId; walletAddress: Address } {
    return this.#parts.keyring.withTrigger(account, digest, (secret) => ({
      keyId: keyIdOf(secret.toString("base64") as ApiKey),
      walletAddress: addressOf(secret),
    }));
  }

  /** Without params and secret, which the owner knows: their hashes are those of what the owner sent. */
  #statement(account: AccountId, keyId: KeyId, { id, cid, params, settings }: Definition): string {
    const { publicKey } = this.#parts.statementKey;
    const claims = {
      v: 1,
      account_id: account,
      api_key_hash: keyId,
      trigger_id: id,
      action_ipfs_cid: cid,
      params_sha256: sha256(params),
      ...withoutSecret(settings),
    };
    const header = JSON.stringify({ alg: "EdDSA", kid: publicKey, typ: TRIGGER_STATEMENT_TYPE });
    const signed = [header, canonicalize(claims) ?? ""]
      .map((part) => Buffer.from(part).toString("base64url"))
      .join(".");
    return `${signed}.${this.#parts.statementKey.sign(Buffer.from(signed, "ascii")).toString("base64url")}`;
  }
}

const hasFired = (): KeywrightError =>
  new KeywrightError("already_ran", "The trigger has fired for this cause; it fires once for each.");

const sha256 = (text: string): string => createHash("sha256").update(text, "utf8").digest("hex");

const digestOf = (definition: Definition): Buffer =>
  createHash("sha256")
    .update(canonicalize(definition) ?? "", "utf8")
    .digest();

function requireCid(text: string): Cid {
  const cid = parseCid(text);
  if (cid === undefined)
    throw new KeywrightError("invalid_cid", "The CID must be CIDv0, or CIDv1 of dag-pb and sha2-256.");
  return cid;
}

/** A hook that is verified has a secret: the one given, or a new one. */
function withSecret(settings: Settings, random: Buffer): { complete: Settings; hookSecret?: string } {
  if (!("hook" in settings)) return { complete: settings };
  const { hook } = settings;
  if (hook.verification === "none" || hook.secret !== undefined) return { complete: settings };
  const secret =
    hook.verification === "hmac" ? random.toString("hex") : `whsec_${random.subarray(0, 24).toString("base64")}`;
  return { complete: { hook: { ...hook, secret } }, hookSecret: secret };
}

function withoutSecret(settings: Settings): Settings {
  if (!("hook" in settings)) return settings;
  const { secret: _, ...hook } = settings.hook;
  return { hook: hook as HookSettings };
}

/** What can be parsed may be too deep to be written again. */
const MAX_NESTED = 100;

const isDeeper = (value: unknown, left: number): boolean =>
  typeof value === "object" &&
  value !== null &&
  (left === 0 || Object.values(value).some((member) => isDeeper(member, left - 1)));

function objectIn(bytes: Buffer): object {
  const value = bytes.length === 0 ? {} : parseJson(bytes.toString("utf8"));
  if (value === undefined) throw new KeywrightError("malformed_json", "The body is not JSON in UTF-8.");
  if (isDeeper(value, MAX_NESTED))
    throw new KeywrightError("invalid_body", `The body may be nested at most ${MAX_NESTED} deep.`);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw new KeywrightError("invalid_body", "The body must be a JSON object: its members become params of the action.");
}

/** Own members only, without assigning: `__proto__` is an ordinary member. */
const withOwn = (...objects: readonly object[]): object =>
  Object.fromEntries(objects.flatMap((one) => Object.entries(one)));
