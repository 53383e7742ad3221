/**
 * Every limit and price of the service, with its default. One table: the code enforces these values, `/limits` serves them, the docs are checked against them.
 * Source: specification §8; design of the executor and the wire.
 */
const KIB = 1024;
const MIB = 1024 * KIB;

/** What one run may use. Enforced by the executor. */
export const RUN_LIMITS = {
  wallMs: 60_000,
  heapMiB: 128,
  codeBytes: 16 * MIB,
  parseMs: 10_000,
  paramsBytes: 64 * KIB,
  responseBytes: 100 * KIB,
  logsBytes: 100 * KIB,
  fetches: 50,
  /** Names that are looked up for a run's fetches, redirects included; a name counts once. */
  lookups: 20,
  fetchTimeoutMs: 30_000,
  fetchBytes: 10 * MIB,
  keyOps: 100,
  /** Of the arguments of signMessage, signTransaction, signEd25519 or signP256, as JSON: hashing holds up everybody's ops. */
  signBytes: 64 * KIB,
  /** Of the arguments of signTypedData, as JSON. */
  typedDataBytes: 16 * KIB,
  typedDataTypes: 64,
  /** Ways from one type to another through their fields: the library walks each of them. */
  typedDataPaths: 256,
  /** What an EIP-712 hash takes in, descriptions of the types included. */
  typedDataHashBytes: 48 * KIB,
  privateKeyReads: 10,
  imports: 20,
  importBytes: 5 * MIB,
};
export type RunLimits = Readonly<Record<keyof typeof RUN_LIMITS, number>>;

/** What all runs share at a time; one account holds a quarter at most, and waits beyond it. Enforced by the executor. */
export const SHARED_LIMITS = {
  fetchesUnderWay: 256,
  /** Of bodies on their way out. */
  fetchBodyBytes: 128 * MIB,
  /** Of answers that are longer than 256 KiB. */
  fetchAnswerBytes: 128 * MIB,
} as const;
export type SharedLimits = typeof SHARED_LIMITS;

/** The most `wallMs` may be set to by an operator. */
export const MAX_WALL_MS = 15 * 60_000;

/** What one request may carry. Enforced by relayer and contract. */
export const WIRE_LIMITS = {
  bodyBytes: 1 * MIB,
  codeBodyBytes: 17 * MIB,
  signatureBodyBytes: 8 * KIB,
  typedDataBytes: 4 * KIB,
  issuedAtWindowSeconds: 300,
  nameBytes: 128,
  descriptionBytes: 1024,
  pageSizeDefault: 50,
  pageSizeMax: 1000,
  eventsPageMax: 1000,
  membersPerRequest: 256,
  scopeListItems: 1000,
  jsonDepth: 128,
  idempotencyKeyChars: 255,
  idempotencyHours: 24,
  usageKeySecretBytes: 32,
  amountCentsMin: 500,
  amountCentsMax: 99_999_999,
} as const;
export type WireLimits = typeof WIRE_LIMITS;

/** Prices in US cents. Whatever is not named costs nothing. */
export const PRICES = {
  managementWriteCents: 1,
  runSecondCents: 1,
};
export type Prices = Readonly<Record<keyof typeof PRICES, number>>;

/** Requests per window; the development values are generous. */
export const RATE_LIMITS = {
  development: {
    addressRequestsPerSecond: 2_000,
    strangersPerMinutePerAddress: 6_000,
    heavyPerMinutePerAddress: 6_000,
    paymentIntentsPerMinute: 600,
    mintsPerMinutePerAddress: 120,
    mintsPerDay: 1_000_000,
    keyRequestsPerSecond: 200,
  },
  production: {
    /** Of one address, whatever it asks: counted before anything else is done. */
    addressRequestsPerSecond: 100,
    /** Credentials of one address that turn out to be nobody's. */
    strangersPerMinutePerAddress: 60,
    /** Requests of one address that cost much and ask for no credential: quotes, CIDs of code, forward requests. */
    heavyPerMinutePerAddress: 120,
    /** Of one account. */
    paymentIntentsPerMinute: 10,
    mintsPerMinutePerAddress: 10,
    mintsPerDay: 1_000,
    keyRequestsPerSecond: 50,
  },
} as const;
export type RateLimits = Readonly<Record<keyof (typeof RATE_LIMITS)["production"], number>>;
