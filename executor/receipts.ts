/** Receipts of runs, signed where the runs are decided and executed: the relayer can only pass them on. */
import { hash } from "node:crypto";
import type { Cid, Hash32, PkpId } from "../protocol/ids";
import type { KeyState } from "../protocol/keyState";
import { RECEIPT_TYPE, RECEIPT_VERSION, type ReceiptClaims } from "../protocol/receipt";
import { startedSeconds } from "../protocol/limits";
import type { Decision } from "../protocol/decision";
import type { Chain } from "./chain/chain";
import type { StatementKey } from "./keys/statementKey";
import type { RunOutcome } from "./sandbox/types";
import { within } from "../protocol/within";

export interface ReceiptParts {
  readonly chain: Pick<Chain, "blockHash">;
  readonly statementKey: StatementKey;
  readonly keyNamespace: Hash32;
  /** Hex of the SHA-256 of the config document. */
  readonly configSha256: string;
  readonly runSecondCents: number;
}

/** What a run asked for and by which decision it was permitted or refused. */
export interface DecidedRun {
  readonly requestId: string;
  readonly key: Pick<KeyState, "keyId" | "accountId">;
  readonly cid: Cid;
  /** In hex, of their JSON text. */
  readonly paramsSha256: string;
  readonly decision: Decision;
  readonly trigger?: { readonly id: string; readonly cause: string } | undefined;
}

export interface RunPayment {
  /** The paid time, which bounds the price. */
  readonly limitMs: number;
  readonly isFree: boolean;
}

/** How long the answer of a finished run waits for the hash of its decision's block, once for each block. */
const BLOCK_HASH_WAIT_MS = 250;

/** What a run used, and since when. */
export class RunUse {
  /** Of the request until the run starts; in milliseconds since 1970. */
  startedAtMs = Date.now();
  readonly pkps = new Set<PkpId>();
  readonly ops: Record<string, number> = {};

  count(op: string): void {
    this.ops[op] = (this.ops[op] ?? 0) + 1;
  }
}

type EndClaims = "response_sha256" | "pkps" | "ops" | "started_at_ms" | "duration_ms" | "price_cents" | "outcome";
/** Each is stated, and those without a value are left out. */
type Stated = { readonly [C in keyof Required<ReceiptClaims>]: ReceiptClaims[C] | undefined };

export class Receipts {
  readonly #parts: ReceiptParts;
  readonly #header: string;

  constructor(parts: ReceiptParts) {
    this.#parts = parts;
    const header = { alg: "EdDSA", kid: parts.statementKey.publicKey, typ: RECEIPT_TYPE };
    this.#header = base64url(JSON.stringify(header));
  }

  /** Asks for the hash of the decision's block, so that the answer comes while the run executes. */
  prepare(decision: Decision): void {
    void this.#parts.chain.blockHash(decision);
  }

  async ofRun(run: DecidedRun, outcome: RunOutcome, { limitMs, isFree }: RunPayment, use: RunUse): Promise<string> {
    const { durationMs, error, response } = outcome;
    const seconds = Math.min(startedSeconds(durationMs), startedSeconds(limitMs));
    return this.#signed(run, {
      response_sha256: sha256(response),
      pkps: [...use.pkps],
      ops: use.ops,
      started_at_ms: use.startedAtMs,
      duration_ms: Math.round(durationMs * 1000) / 1000,
      price_cents: isFree ? 0 : seconds * this.#parts.runSecondCents,
      outcome: error?.code ?? "succeeded",
    });
  }

  /** For a run that the contract refused: nothing ran, nothing is charged. */
  ofRefusal(run: DecidedRun, code: string): Promise<string> {
    const nothing = { pkps: [], ops: {}, started_at_ms: Date.now(), duration_ms: 0, price_cents: 0 };
    return this.#signed(run, { ...nothing, outcome: code });
  }

  async #signed(
    { requestId, key, cid, paramsSha256, decision, trigger }: DecidedRun,
    ended: Pick<ReceiptClaims, EndClaims>,
  ): Promise<string> {
    const blockHash = await inTime(this.#parts.chain.blockHash(decision));
    // In the order of the canonical form (RFC 8785), which JSON.stringify then writes: see the test.
    const claims: Stated = {
      account_id: key.accountId,
      action_ipfs_cid: cid,
      api_key_hash: key.keyId,
      block: { hash: blockHash ?? null, number: Number(decision.blockNumber) },
      config_sha256: this.#parts.configSha256,
      duration_ms: ended.duration_ms,
      key_namespace: this.#parts.keyNamespace,
      ops: Object.fromEntries(
        Object.keys(ended.ops)
          .sort()
          .map((op) => [op, ended.ops[op] ?? 0]),
      ),
      outcome: ended.outcome,
      params_sha256: paramsSha256,
      pkps: ended.pkps,
      price_cents: ended.price_cents,
      request_id: requestId,
      response_sha256: ended.response_sha256,
      started_at_ms: ended.started_at_ms,
      trigger: trigger && { cause: trigger.cause, id: trigger.id },
      v: RECEIPT_VERSION,
    };
    const signed = `${this.#header}.${base64url(JSON.stringify(claims))}`;
    return `${signed}.${this.#parts.statementKey.sign(Buffer.from(signed, "ascii")).toString("base64url")}`;
  }
}

const base64url = (text: string): string => Buffer.from(text, "utf8").toString("base64url");
const sha256 = (text: string): string => hash("sha256", text, "hex");

const NOT_YET = Promise.resolve(Symbol("not yet"));

/** Without a timer where it is there already, as for most runs. */
async function inTime<T>(value: Promise<T>): Promise<T | undefined> {
  const now = await Promise.race([value, NOT_YET]);
  return now === (await NOT_YET) ? within(BLOCK_HASH_WAIT_MS, value, () => undefined) : (now as T);
}
