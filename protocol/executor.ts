/**
 * What relayer and executor say to each other: JSON over HTTP on a Unix socket, every message checked on both sides.
 * The executor takes nothing on the relayer's word: it hashes the key, recomputes the CID, asks the contract and checks signatures and tokens itself.
 * Source: design of the executor, "Keyholder".
 */
import { z } from "zod";
import { RUN_ERROR_CODES } from "./errors";
import { publicKeysSchema } from "./publicKeys";

const hex = (digits: number): z.ZodString => z.string().regex(new RegExp(`^0x[0-9a-fA-F]{${digits}}$`));
const hash32 = hex(64);
const address = hex(40);
const hexData = z.string().regex(/^0x([0-9a-fA-F]{2})*$/);
const decimal = z.string().regex(/^(0|[1-9][0-9]{0,77})$/);

/** Who asks: the raw key, or the raw identity token (verified by the keyholder itself on every use). */
export const credentialSchema = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("key"), key: z.string() }),
  z.strictObject({ type: z.literal("identity"), token: z.string() }),
]);
export type Credential = z.infer<typeof credentialSchema>;

/** A signed envelope as a client sent it. */
export const signedEnvelopeSchema = z.strictObject({ typed_data: z.unknown(), signature: z.unknown() });

/** An argument of a contract function: uints as decimal or 0x strings, addresses and bytes as hex, nested for arrays. */
export type WriteArgument = string | boolean | WriteArgument[];
export const writeArgumentSchema: z.ZodType<WriteArgument> = z.lazy(() => z.union([z.string(), z.boolean(), z.array(writeArgumentSchema)]));

/** One contract write; `multicall` takes its inner calls in `calls`, one level deep. */
export const simpleWriteSchema = z.strictObject({ functionName: z.string(), args: z.array(writeArgumentSchema) });
export const contractWriteSchema = z.union([
  simpleWriteSchema,
  z.strictObject({ functionName: z.literal("multicall"), calls: z.array(simpleWriteSchema).min(1).max(64) }),
]);
export type SimpleWrite = z.infer<typeof simpleWriteSchema>;
export type ContractWrite = z.infer<typeof contractWriteSchema>;

/** Writes that can share a transaction. */
export const MAX_BATCH_WRITES = 64;

/** A write as the contract will see it, with the executor's mark that a credential allowed it. */
export const taggedCallSchema = z.strictObject({ calldata: hexData, tag: hash32 });
export type TaggedCall = z.infer<typeof taggedCallSchema>;

/** A refusal or failure, with the status its code has in the error table. */
export const executorErrorSchema = z.strictObject({
  code: z.string(),
  detail: z.string(),
  facts: z.record(z.string(), z.unknown()).optional(),
  retryAfterSeconds: z.number().optional(),
});

const fees = z.strictObject({ maxFeePerGas: decimal, maxPriorityFeePerGas: decimal });

const limitMs = z.number().int().positive();

/**
 * A run may come in two parts, one JSON text a line: who, what and with which PKP; then, once it is paid for, how long. The executor asks the contract while
 * the relayer asks it and reserves credit, and starts nothing before the second part has come.
 */
const runRequest = z.strictObject({
  credential: credentialSchema,
  code: z.string().optional(),
  cid: z.string().optional(),
  /** JSON text of an object. */
  params: z.string(),
  pkpId: address.optional(),
  /** Wall time the reservation pays for; the executor never allows more than its own limit. Absent when it comes as the second part. */
  limitMs: limitMs.optional(),
});
/** The second part of a run. */
export const runStartSchema = z.strictObject({ limitMs });

const runAnswer = z.strictObject({
  /** JSON text of the action's answer: "null" when nothing was returned or set. */
  response: z.string(),
  logs: z.string(),
  error: z.strictObject({ code: z.enum(RUN_ERROR_CODES), message: z.string(), stack: z.string().optional() }).optional(),
  usage: z.strictObject({ durationMs: z.number().nonnegative(), limitMs: z.number().positive() }),
  /** True when the failure was the service's own, so that nothing is charged. */
  faultIsOurs: z.boolean(),
  cid: z.string(),
  /** The PKPs that the run's ops were allowed to use, each once, in the order of their first use. */
  pkpsUsed: z.array(address),
});

/**
 * Names the request a key is made for (a hash that covers the client's own `Idempotency-Key`): the same name gives the same key, so that it is not lost with an
 * answer. Left out, the key is random.
 */
const attempt = z.strictObject({
  attempt: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
});

const mintedWallet = z.strictObject({ walletAddress: address, derivationPath: hash32 });

/** Every call: its path, request and answer. */
export const EXECUTOR_CALLS = {
  run: { path: "/run", request: runRequest, answer: runAnswer },
  mintAccountKey: {
    path: "/mint/account-key",
    request: attempt,
    answer: z.strictObject({ apiKey: z.string(), apiKeyHash: hash32, walletAddress: address }),
  },
  /** A usage key for an API-mode account: fresh random bytes, no derivation path. */
  mintApiUsageKey: {
    path: "/mint/api-usage-key",
    request: attempt,
    answer: z.strictObject({ usageApiKey: z.string(), apiKeyHash: hash32, walletAddress: address }),
  },
  mintPkp: { path: "/mint/pkp", request: z.strictObject({ accountId: hash32 }), answer: mintedWallet },
  /** Signature routes: the envelope is checked here, too; `accountId` defaults to the packed id of the signing wallet. */
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
  /** The public keys of the PKP that the path of this account leads to, signed by the executor's statement key. */
  publicKeys: {
    path: "/public-keys",
    request: z.strictObject({ accountId: hash32, pkpId: address, derivationPath: hash32 }),
    answer: publicKeysSchema,
  },
  ownerWallet: {
    path: "/owner-wallet",
    request: z.strictObject({ token: z.string() }),
    answer: z.strictObject({ walletAddress: address, accountId: hash32 }),
  },
  /**
   * Encodes each write iff its own credential allows it, in the order given; `tag` lets the same calldata be signed again (other nonce or fees) without the
   * credential. One that is refused does not touch the others.
   */
  authorizeWrites: {
    path: "/authorize-writes",
    request: z.strictObject({
      writes: z
        .array(z.strictObject({ credential: credentialSchema, write: contractWriteSchema, convert: signedEnvelopeSchema.optional() }))
        .min(1)
        .max(MAX_BATCH_WRITES),
    }),
    answer: z.strictObject({ writes: z.array(z.union([taggedCallSchema, z.strictObject({ refused: executorErrorSchema })])) }),
  },
  /** `payer` counts lanes from 1; 0 is the admin payer. One call is sent as it is, several as one `tryMulticall`; every tag is checked. */
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
  /** Requests that owners signed, sent to the forwarder in one transaction; each is checked again. */
  signForwards: {
    path: "/sign/forwards",
    request: fees.extend({
      payer: z.number().int().nonnegative(),
      /** As `encodeForward` gives them. */
      forwards: z.array(hexData).min(1).max(32),
      nonce: z.number().int().nonnegative(),
      gasLimit: decimal,
    }),
    answer: z.strictObject({ rawTransaction: hexData, hash: hash32 }),
  },
  /** A forward request signed by the wallet of the identity that the token shows; `forwarderNonce` is the wallet's next. */
  signForwardOfIdentity: {
    path: "/sign/forward-of-identity",
    request: z.strictObject({ token: z.string(), write: contractWriteSchema, gas: decimal, forwarderNonce: decimal, deadline: decimal }),
    answer: z.strictObject({ forward: hexData }),
  },
  /** A transaction to itself with value 0, to fill a nonce. */
  signNoop: {
    path: "/sign/noop",
    request: fees.extend({ payer: z.number().int().nonnegative(), nonce: z.number().int().nonnegative() }),
    answer: z.strictObject({ rawTransaction: hexData, hash: hash32 }),
  },
  /** From the admin payer to a derived payer, capped by configuration. */
  signTopUp: {
    path: "/sign/top-up",
    request: fees.extend({ toPayer: z.number().int().positive(), amountWei: decimal, nonce: z.number().int().nonnegative() }),
    answer: z.strictObject({ rawTransaction: hexData, hash: hash32 }),
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
      /** With a nonce: the two digests hashed into the report data beside it (hex; the leaf's is zero when none is bound). */
      config_sha256: z.string().optional(),
      tls_leaf_sha256: z.string().optional(),
    }),
  },
  /** A quote over the checksums of the TLS evidence: report data is their SHA-256 and 32 zero bytes, which no attestation's report data is. */
  evidenceQuote: {
    path: "/evidence-quote",
    request: z.strictObject({ sha256: z.string().regex(/^[0-9a-f]{64}$/) }),
    answer: z.strictObject({ quote: z.string(), event_log: z.string(), vm_config: z.string(), report_data: z.string() }),
  },
  info: {
    path: "/info",
    request: z.strictObject({}),
    answer: z.strictObject({
      chainId: decimal,
      contractAddress: address,
      keyNamespace: hash32,
      limits: z.record(z.string(), z.number()),
      privateKeysAllowed: z.boolean(),
      /** `identity` names the OIDC issuers accepted; empty when none. */
      tee: z.enum(["dstack", "simulated", "none"]),
      /** dstack's info object as it came, absent when `tee` is none. */
      dstack: z.record(z.string(), z.unknown()).optional(),
      /** The attested config document, absent fields never null. */
      config: z.record(z.string(), z.unknown()),
      sandbox: z.strictObject({ level: z.string(), missing: z.array(z.string()) }),
      pool: z.strictObject({ size: z.number(), busy: z.number(), queued: z.number() }),
      /** The longest the keyholder's event loop was held, and computed meanwhile, in each of the last sixty seconds, in ms, the newest last. */
      loop: z.strictObject({ heldMs: z.array(z.number()), computedMs: z.array(z.number()) }),
    }),
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

/** Sent with every call; the executor's log lines carry it. */
export const REQUEST_ID_HEADER = "x-request-id";
