/**
 * The protocol between relayer and executor: JSON over HTTP on a Unix socket, every message validated on both sides.
 * The executor does not trust the relayer: it hashes the key, computes the CID, reads the contract and verifies
 * signatures and tokens itself.
 */
import { z } from "zod";
import { BUDGET_NAME, WINDOWS } from "./budgetTerms";
import { RUN_ERROR_CODES } from "./errors";
import type { KeyState } from "./keyState";
import { publicKeysSchema } from "./publicKeys";
import { receiptText } from "./receipt";
import { WEBHOOK_CALLS } from "./webhookCalls";
import { causeSchema, settingsSchema, triggerIdSchema } from "./trigger";

const hex = (digits: number): z.ZodString => z.string().regex(new RegExp(`^0x[0-9a-fA-F]{${digits}}$`));
const hash32 = hex(64);
const address = hex(40);
const hexData = z.string().regex(/^0x([0-9a-fA-F]{2})*$/);
const decimal = z.string().regex(/^(0|[1-9][0-9]{0,77})$/);

/** The caller's credential: the raw key or the raw identity token, which the keyholder verifies on every use. */
export const credentialSchema = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("key"), key: z.string() }),
  z.strictObject({ type: z.literal("identity"), token: z.string() }),
]);
export type Credential = z.infer<typeof credentialSchema>;

/** What allows a write: its caller's credential, or for a lease of a budget that the keyholder asked for it. */
export const writeCredentialSchema = z.discriminatedUnion("type", [
  ...credentialSchema.options,
  z.strictObject({ type: z.literal("lease"), id: hash32 }),
]);
export type WriteCredential = z.infer<typeof writeCredentialSchema>;

/** A trigger fires: the keyholder derives its key from the sealed definition, and checks the cause. */
const triggerCredential = z.strictObject({
  type: z.literal("trigger"),
  accountId: hash32,
  sealed: z.string(),
  cause: causeSchema,
});
export type TriggerCredential = z.infer<typeof triggerCredential>;
const runCredentialSchema = z.discriminatedUnion("type", [...credentialSchema.options, triggerCredential]);

/** A signed envelope as sent by a client. */
export const signedEnvelopeSchema = z.strictObject({ typed_data: z.unknown(), signature: z.unknown() });

/** How a new owner agreed to a conversion: its signed ConvertAccount envelope, or the token of its identity. */
export const consentSchema = z.union([signedEnvelopeSchema, z.strictObject({ token: z.string() })]);

/** An argument of a contract function: uints as decimal or 0x strings, addresses and bytes as hex, arrays nested. */
export type WriteArgument = string | boolean | WriteArgument[];
export const writeArgumentSchema: z.ZodType<WriteArgument> = z.lazy(() =>
  z.union([z.string(), z.boolean(), z.array(writeArgumentSchema)]),
);

/** One contract write; `multicall` has its inner calls in `calls`, one level deep. */
export const simpleWriteSchema = z.strictObject({ functionName: z.string(), args: z.array(writeArgumentSchema) });
export const contractWriteSchema = z.union([
  simpleWriteSchema,
  z.strictObject({ functionName: z.literal("multicall"), calls: z.array(simpleWriteSchema).min(1).max(64) }),
]);
export type SimpleWrite = z.infer<typeof simpleWriteSchema>;
export type ContractWrite = z.infer<typeof contractWriteSchema>;

/** Maximum number of writes in one transaction. */
export const MAX_BATCH_WRITES = 32;

/** Calldata with the executor's tag, which proves that a credential allowed it. */
export const taggedCallSchema = z.strictObject({ calldata: hexData, tag: hash32 });
export type TaggedCall = z.infer<typeof taggedCallSchema>;

/** A key in the contract's state at the block of the decision: see `KeyState`. */
const runKeySchema = z.strictObject({
  keyId: hash32,
  accountId: hash32,
  isAccountKey: z.boolean(),
  live: z.boolean(),
  managed: z.boolean(),
  expiresAtSeconds: decimal,
  capCents: decimal,
});
export type RunKey = z.infer<typeof runKeySchema>;

export const runKeyOf = (key: KeyState): RunKey => ({
  ...key,
  expiresAtSeconds: String(key.expiresAtSeconds),
  capCents: String(key.capCents),
});

/** A refusal or failure, with a code of the error table. */
export const executorErrorSchema = z.strictObject({
  code: z.string(),
  detail: z.string(),
  facts: z.record(z.string(), z.unknown()).optional(),
  retryAfterSeconds: z.number().optional(),
  /** Set when the contract denies a run to a key that it knows. */
  key: runKeySchema.optional(),
});

const fees = z.strictObject({ maxFeePerGas: decimal, maxPriorityFeePerGas: decimal });

const limitMs = z.number().int().positive();
const notBefore = z.number().int().nonnegative();

/**
 * A run is requested in three parts and answered in two. The first says whose credential, which code and which PKP,
 * and the executor reads the contract at once; the second names the block that the decision may not be older than. Then
 * the executor answers with the permission as the first line, including the account that pays, or with a refusal like
 * any other. The relayer confirms the payment and its time limit as the third part, and the second line is the outcome.
 * If the request ends without that confirmation, nothing runs. A request that includes its limit is complete, and so is
 * its answer.
 */
const runRequest = z.strictObject({
  /** Of a trigger: code and params are those of its definition, whatever the request says. */
  credential: runCredentialSchema,
  /** Code, its CID, or both, which must then match. */
  code: z.string().optional(),
  cid: z.string().optional(),
  /** With a CID only: code that this executor has not stored is refused with `code_not_found` instead of fetched. */
  keptOnly: z.boolean().optional(),
  /** JSON text of an object. */
  params: z.string(),
  pkpId: address.optional(),
  /** Of a complete request: see the second part. */
  notBefore: notBefore.optional(),
  /** Wall time that the reservation pays for; the executor's own limit also applies. Absent when sent as a part. */
  limitMs: limitMs.optional(),
});
/** The second part: the decision must be of this block or a later one. It is that of the last answered write. */
export const runNotBeforeSchema = z.strictObject({ notBefore });
/** The third part. */
export const runStartSchema = z.strictObject({ limitMs });

const runAnswer = z.strictObject({
  /** JSON text of the action's response: "null" when nothing was returned or set. */
  response: z.string(),
  /** JSON text: signatures by name, made by the functions of older systems. */
  signatures: z.string().optional(),
  logs: z.string(),
  error: z
    .strictObject({ code: z.enum(RUN_ERROR_CODES), message: z.string(), stack: z.string().optional() })
    .optional(),
  usage: z.strictObject({ durationMs: z.number().nonnegative(), limitMs: z.number().positive() }),
  /** The failure was the service's own. */
  serviceFault: z.boolean(),
  /** Nothing is charged. */
  isFree: z.boolean(),
  cid: z.string(),
  /** PKPs that the run's ops have used, each once, in the order of first use. */
  pkpsUsed: z.array(address),
  receipt: receiptText,
});

/** The first line of the answer: the run is permitted. */
export const runPermissionSchema = z.strictObject({ key: runKeySchema });
export type RunPermission = z.infer<typeof runPermissionSchema>;
/** The second line: the run's outcome, or why it did not start or was aborted. */
export const runOutcomeSchema = z.union([
  z.strictObject({ answer: runAnswer }),
  z.strictObject({ refused: executorErrorSchema }),
]);

/**
 * Identifies the request that creates a key (a hash that covers the client's `Idempotency-Key`). Retries get the same
 * key, so that it is not lost with an answer. Without it the key is random.
 */
const attempt = z.strictObject({
  attempt: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
});

const mintedWallet = z.strictObject({ walletAddress: address, derivationPath: hash32 });

/** Every call: path, request and answer. */
export const EXECUTOR_CALLS = {
  run: { path: "/run", request: runRequest, answer: runAnswer },
  /** The client of this request's run has gone: it is refused as `queue_full` if it has not begun. */
  leaveQueue: {
    path: "/leave-queue",
    request: z.strictObject({ requestId: z.string() }),
    answer: z.strictObject({}),
  },
  mintAccountKey: {
    path: "/mint/account-key",
    request: attempt,
    answer: z.strictObject({ apiKey: z.string(), apiKeyHash: hash32, walletAddress: address }),
  },
  /** A usage key for an API-mode account: without a derivation path. */
  mintApiUsageKey: {
    path: "/mint/api-usage-key",
    request: attempt,
    answer: z.strictObject({ usageApiKey: z.string(), apiKeyHash: hash32, walletAddress: address }),
  },
  /**
   * A usage key for a trigger, bound to all of its definition. The key never leaves the keyholder; `sealed` is what
   * fires it later. `statement` is a JWS of the statement key: this key is that of this definition.
   */
  mintTrigger: {
    path: "/mint/trigger",
    request: attempt.extend({ accountId: hash32, cid: z.string(), params: z.string(), settings: settingsSchema }),
    answer: mintedWallet.extend({
      triggerId: triggerIdSchema,
      apiKeyHash: hash32,
      sealed: z.string(),
      paramsSha256: z.string(),
      statement: z.string(),
      /** Of a hook whose request named none. */
      hookSecret: z.string().optional(),
    }),
  },
  /** Verifies a hook's request; `key` is the same for a repeated one, where its sender says which is which. */
  acceptHook: {
    path: "/triggers/accept-hook",
    request: z.strictObject({
      accountId: hash32,
      sealed: z.string(),
      /** In base64. */
      body: z.string(),
      headers: z.record(z.string(), z.string()),
    }),
    answer: z.strictObject({ accepted: z.string(), key: z.string() }),
  },
  mintPkp: { path: "/mint/pkp", request: z.strictObject({ accountId: hash32 }), answer: mintedWallet },
  /**
   * Signature routes. The executor verifies the envelope itself; `accountId` defaults to the packed id of the signing
   * wallet.
   */
  mintPkpWithSignature: {
    path: "/mint/pkp-with-signature",
    request: signedEnvelopeSchema.extend({ accountId: hash32.optional() }),
    answer: mintedWallet,
  },
  mintUsageKeyWithSignature: {
    path: "/mint/usage-key-with-signature",
    request: signedEnvelopeSchema.extend({ accountId: hash32.optional() }),
    answer: mintedWallet.extend({ usageApiKey: z.string(), apiKeyHash: hash32 }),
  },
  /** The public keys of the PKP that the account's path derives to, signed by the executor's statement key. */
  publicKeys: {
    path: "/public-keys",
    request: z.strictObject({ accountId: hash32, pkpId: address, derivationPath: hash32 }),
    answer: publicKeysSchema,
  },
  ...WEBHOOK_CALLS,
  ownerWallet: {
    path: "/owner-wallet",
    request: z.strictObject({ token: z.string() }),
    answer: z.strictObject({ walletAddress: address, accountId: hash32 }),
  },
  /**
   * Encodes each write that its own credential allows, in the order given. With the `tag` the same calldata can be
   * signed again (other nonce or fees) without the credential. A refused write does not affect the others.
   */
  authorizeWrites: {
    path: "/authorize-writes",
    request: z.strictObject({
      writes: z
        .array(
          z.strictObject({
            credential: writeCredentialSchema,
            write: contractWriteSchema,
            convert: consentSchema.optional(),
          }),
        )
        .min(1)
        .max(MAX_BATCH_WRITES),
    }),
    answer: z.strictObject({
      writes: z.array(z.union([taggedCallSchema, z.strictObject({ refused: executorErrorSchema })])),
    }),
  },
  /**
   * `payer` counts lanes from 1; 0 is the admin payer. One call is sent alone, several as one `tryMulticall`; every tag
   * is verified.
   */
  signAsPayer: {
    path: "/sign/write",
    request: fees.extend({
      payer: z.number().int().nonnegative(),
      calls: z.array(taggedCallSchema).min(1).max(MAX_BATCH_WRITES),
      nonce: z.number().int().nonnegative(),
      gasLimit: decimal,
    }),
    answer: z.strictObject({ rawTransaction: hexData, hash: hash32 }),
  },
  /** Requests signed by owners, sent to the forwarder in one transaction; each is verified again. */
  signForwards: {
    path: "/sign/forwards",
    request: fees.extend({
      payer: z.number().int().nonnegative(),
      /** As returned by `encodeForward`. */
      forwards: z.array(hexData).min(1).max(MAX_BATCH_WRITES),
      nonce: z.number().int().nonnegative(),
      gasLimit: decimal,
    }),
    answer: z.strictObject({ rawTransaction: hexData, hash: hash32 }),
  },
  /** A forward request signed by the wallet of the token's identity; `forwarderNonce` is the wallet's next nonce. */
  signForwardOfIdentity: {
    path: "/sign/forward-of-identity",
    request: z.strictObject({
      token: z.string(),
      write: contractWriteSchema,
      gas: decimal,
      forwarderNonce: decimal,
      deadline: decimal,
    }),
    answer: z.strictObject({ forward: hexData }),
  },
  /** A transaction of the payer to itself with value 0, to use up a nonce. */
  signNoop: {
    path: "/sign/noop",
    request: fees.extend({ payer: z.number().int().nonnegative(), nonce: z.number().int().nonnegative() }),
    answer: z.strictObject({ rawTransaction: hexData, hash: hash32 }),
  },
  /** From the admin payer to another payer, limited by configuration. */
  signTopUp: {
    path: "/sign/top-up",
    request: fees.extend({
      toPayer: z.number().int().positive(),
      amountWei: decimal,
      nonce: z.number().int().nonnegative(),
    }),
    answer: z.strictObject({ rawTransaction: hexData, hash: hash32 }),
  },
  /** Leases of budgets that runs wait for; answered as soon as there is one. The outcome of each is told. */
  nextLeases: {
    path: "/leases/next",
    request: z.strictObject({}),
    answer: z.strictObject({
      leases: z.array(
        z.strictObject({
          id: hash32,
          accountId: hash32,
          actionHash: hash32,
          cid: z.string(),
          name: z.string().regex(BUDGET_NAME),
          window: z.enum(WINDOWS),
          amount: decimal,
          limit: decimal,
          /** Whose run waits, and its cap: the price counts against it. */
          keyId: hash32,
          isAccountKey: z.boolean(),
          capCents: decimal,
        }),
      ),
    }),
  },
  /** Without `failed` the lease is on its way or on the chain: the keyholder looks for itself. */
  leaseOutcome: {
    path: "/leases/outcome",
    request: z.strictObject({ id: hash32, failed: executorErrorSchema.optional() }),
    answer: z.strictObject({}),
  },
  /** Addresses of payers 0 (admin) to `count`. */
  payers: {
    path: "/payers",
    request: z.strictObject({ count: z.number().int().min(0).max(1024) }),
    answer: z.strictObject({ adminPayer: address, payers: z.array(address) }),
  },
  attestation: {
    path: "/attestation",
    request: z.strictObject({
      nonce: z
        .string()
        .regex(/^([0-9a-f]{2}){16,32}$/)
        .optional(),
    }),
    answer: z.strictObject({
      quote: z.string(),
      event_log: z.string(),
      vm_config: z.string(),
      report_data: z.string(),
      /**
       * With a nonce: the two digests that are hashed into the report data with it (hex; the leaf's is zero when none
       * is bound).
       */
      config_sha256: z.string().optional(),
      tls_leaf_sha256: z.string().optional(),
    }),
  },
  /**
   * A quote over the checksums of the TLS evidence. Report data is their SHA-256 and 32 zero bytes, which no
   * attestation's report data equals.
   */
  evidenceQuote: {
    path: "/evidence-quote",
    request: z.strictObject({ sha256: z.string().regex(/^[0-9a-f]{64}$/) }),
    answer: z.strictObject({
      quote: z.string(),
      event_log: z.string(),
      vm_config: z.string(),
      report_data: z.string(),
    }),
  },
  info: {
    path: "/info",
    request: z.strictObject({}),
    answer: z.strictObject({
      chainId: decimal,
      contractAddress: address,
      keyNamespace: hash32,
      rootCommitment: hash32,
      limits: z.record(z.string(), z.number()),
      privateKeysAllowed: z.boolean(),
      /** `identity` names the OIDC issuers accepted; empty when none. */
      tee: z.enum(["dstack", "simulated", "none"]),
      /** dstack's info object unchanged; absent when `tee` is none. */
      dstack: z.record(z.string(), z.unknown()).optional(),
      /** The attested config document; absent fields are omitted, never null. */
      config: z.record(z.string(), z.unknown()),
      sandbox: z.strictObject({ level: z.string(), missing: z.array(z.string()) }),
      /** `held`: what is granted at the moment of each thing that accounts share. */
      pool: z.strictObject({
        size: z.number(),
        busy: z.number(),
        queued: z.number(),
        held: z.record(z.string(), z.number()),
      }),
      /**
       * The keyholder's event loop: the longest block and the most CPU time in each of the last sixty seconds, in ms,
       * newest last.
       */
      loop: z.strictObject({ heldMs: z.array(z.number()), computedMs: z.array(z.number()) }),
    }),
  },
  /** The commitment to the root key: the only call that a keyholder without a contract answers. */
  rootCommitment: {
    path: "/root-commitment",
    request: z.strictObject({}),
    answer: z.strictObject({ commitment: hash32, publicKey: hash32 }),
  },
  ready: {
    path: "/ready",
    request: z.strictObject({}),
    answer: z.strictObject({ ready: z.boolean(), problems: z.array(z.string()), blockNumber: z.number().optional() }),
  },
} as const;

export type ExecutorCall = keyof typeof EXECUTOR_CALLS;
export type ExecutorRequest<C extends ExecutorCall> = z.infer<(typeof EXECUTOR_CALLS)[C]["request"]>;
export type ExecutorAnswer<C extends ExecutorCall> = z.infer<(typeof EXECUTOR_CALLS)[C]["answer"]>;

/** Sent with every call and added to the executor's log lines. */
export const REQUEST_ID_HEADER = "x-request-id";
/**
 * Characters of a large run's code and the account that sends it. Before the body is read, nothing else tells whose
 * share of the memory it takes; nothing but fairness depends on it.
 */
export const SHARE_HEADER = "x-code-share";
