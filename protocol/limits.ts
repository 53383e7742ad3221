/**
 * Every limit and price of the service, with its default. The code enforces these values, `/limits` serves them, and
 * the docs are checked against them.
 * Source: docs/conformance.md §8.
 */
export const KIB = 1024;
export const MIB = 1024 * KIB;

/** Limits of one run, enforced by the executor. */
export const RUN_LIMITS = {
  wallMs: 60_000,
  heapMiB: 128,
  codeBytes: 16 * MIB,
  parseMs: 10_000,
  /** Room for the largest initcode, 49,152 bytes, as hex. */
  paramsBytes: 128 * KIB,
  responseBytes: 100 * KIB,
  logsBytes: 100 * KIB,
  fetches: 50,
  /** Name lookups for a run's fetches, including redirects; each name counts once. */
  lookups: 20,
  fetchTimeoutMs: 30_000,
  fetchBytes: 10 * MIB,
  keyOps: 100,
  /** JSON size of the arguments of an op that hashes them (`protocol/ops.ts`): hashing blocks the ops of all runs. */
  signBytes: 128 * KIB,
  /** JSON size of the arguments of signTypedData. */
  typedDataBytes: 16 * KIB,
  typedDataTypes: 64,
  /** Paths from type to type through their fields: the library walks each of them. */
  typedDataPaths: 256,
  /** Bytes hashed for an EIP-712 hash, including the type descriptions. */
  typedDataHashBytes: 48 * KIB,
  privateKeyReads: 10,
  imports: 20,
  importBytes: 5 * MIB,
};
export type RunLimits = Readonly<Record<keyof typeof RUN_LIMITS, number>>;

/** What all runs share, each account fairly (`fairShare.ts`). Enforced by the executor. */
export const SHARED_LIMITS = {
  /** How long others wait before what an account holds most of is taken from it. */
  patienceMs: 1_000,
  fetchesUnderWay: 64,
  /** Memory of messages of children longer than 128 KiB, from before they are read till they are admitted below. */
  frameBytes: 128 * MIB,
  /** Bytes of request bodies in transit, and memory of the other arguments of fetches where they exceed 16 KiB. */
  fetchBodyBytes: 128 * MIB,
  /** Memory of ops with arguments longer than 16 KiB, until their answer has left the keyholder. */
  opMemoryBytes: 128 * MIB,
  /** Memory of code and params that wait for a child, in the keyholder, where code or request exceed 64 KiB. */
  codeMemoryBytes: 1_024 * MIB,
  /** The same for up to a megabyte, which does not wait for larger code. */
  mediumCodeMemoryBytes: 128 * MIB,
  /**
   * Memory of request bodies larger than 64 KiB, and of stored code till the executor has it, in each relayer; runs
   * that have begun give it up to others.
   */
  bodyMemoryBytes: 288 * MIB,
  /** The same for those of up to a megabyte, which do not wait for larger ones. */
  mediumBodyMemoryBytes: 48 * MIB,
  /** Bytes of request bodies from 4 to 64 KiB, in each relayer, while they arrive. */
  arrivingBodyBytes: 32 * MIB,
  /** Bytes of answers longer than 256 KiB, and of imported modules, until the child has them. */
  fetchAnswerBytes: 128 * MIB,
} as const;

/** Webhooks: messages that the service sends about an account. Enforced by relayer and executor. */
export const WEBHOOK_LIMITS = {
  perAccount: 16,
  /** Attempts under way in each relayer, each account fairly. */
  underWay: 64,
  /** Of those, attempts for one webhook. */
  underWayEach: 4,
  timeoutMs: 10_000,
  bodyBytes: 64 * KIB,
  /** How much of a receiver's answer is read and kept. */
  answerBytes: 1 * KIB,
  /** Messages that may wait for one webhook before it is switched off. */
  waiting: 100_000,
  /** While so many wait, no further `webhook.test` is made. */
  waitingForTest: 100,
  /** Messages that one request fetches where a webhook has no URL. */
  receivedAtOnce: 20,
  /** `credit.low` is sent by the posting that takes the balance below this, unless the webhook states another level. */
  creditLowCents: 100,
  keyExpiringDays: 3,
} as const;

/** Waits before the second and each further attempt, in seconds: the last one begins after three days. */
export const WEBHOOK_RETRY_SECONDS = [
  5, 10, 15, 30, 60, 300, 1_200, 3_600, 7_200, 14_400, 28_800, 57_600, 64_800, 81_000,
] as const;

/** The highest `wallMs` an operator may set. */
export const MAX_WALL_MS = 15 * 60_000;

/** Limits of one request, enforced by relayer and contract. */
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
  /** Groups a page whose members are shown as well. */
  membersPageMax: 200,
  /** Budgets a page: what is used of each is read from the chain. */
  budgetsPageMax: 200,
  /** Records that a search or filter visits. */
  searchedRecords: 10_000,
  searchBytes: 128,
  eventsPageMax: 1000,
  /** Of events' arguments, unless one event alone has more. */
  eventsPageBytes: 4 * MIB,
  exportRowsMax: 10_000,
  membersPerRequest: 256,
  scopeListItems: 1000,
  jsonDepth: 128,
  idempotencyKeyChars: 255,
  idempotencyHours: 24,
  usageKeySecretBytes: 32,
  amountCentsMin: 500,
  amountCentsMax: 99_999_999,
} as const;

/** Limits of triggers, enforced by keyholder and relayer. Source: docs/triggers.md. */
export const TRIGGER_LIMITS = {
  perAccount: 1_000,
  /** Of an account, those that their owner has not attached yet: free, with code and params. */
  unattachedPerAccount: 50,
  /** Of those, and of their bytes, what usage keys may ask for: half. */
  unattachedOfKeys: 25,
  unattachedBytes: 16 * MIB,
  unattachedDays: 30,
  cronChars: 256,
  confirmations: 64,
  hookBodyBytes: 32 * KIB,
  /** Requests that one hook accepts. */
  hooksPerMinute: 600,
  /** Firings of one account that wait; further hooks are refused. Also of one trigger, and of an account's logs in one
   * block: triggers with more of them are paused. */
  waitingPerAccount: 1_000,
  /** Of one hook. */
  waitingPerHook: 250,
  /** Firings of one account that wait, of all its triggers: more logs pause theirs. */
  waitingOfLogs: 10_000,
  /** How far ahead of the keyholder's clock a relayer's may be. */
  earlySeconds: 2,
  /** How late a due time may still begin. */
  lateSeconds: 300,
  /** A schedule with `missed: skip` makes no firing that the service has noticed later than this. */
  skipAfterSeconds: 30,
  /** Age of a webhook's signed time, as the Standard Webhooks libraries check it. */
  hookToleranceSeconds: 300,
  /** How long an accepted hook or a log may wait to fire. */
  waitHours: 24,
  /** Failures one after the other that pause a trigger. */
  failuresBeforePause: 5,
} as const;

/** What an owner may set for a usage key. */
export const KEY_LIMITS = {
  centsPerDay: 99_999_999,
  runsPerMinute: 100_000,
  origins: 16,
} as const;

/** Prices in US cents; everything else is free. */
export const PRICES = {
  managementWriteCents: 1,
  runSecondCents: 1,
};
export type Prices = Readonly<Record<keyof typeof PRICES, number>>;
/**
 * A started second is charged in full; every started run counts at least one. The relayer charges by this rule, and the
 * keyholder certifies it.
 */
export const startedSeconds = (durationMs: number): number => Math.max(1, Math.ceil(durationMs / 1000));

/** Requests per window; generous in development. */
export const RATE_LIMITS = {
  development: {
    addressRequestsPerSecond: 2_000,
    unknownCredentialsPerMinutePerAddress: 6_000,
    heavyPerMinutePerAddress: 6_000,
    paymentIntentsPerMinute: 600,
    mintsPerMinutePerAddress: 120,
    mintsPerDay: 1_000_000,
    freeWritesPerDay: 10_000,
    freeChangesPerDay: 1_000_000,
    keyRequestsPerSecond: 200,
  },
  production: {
    /** All requests of one address, counted before any other work. */
    addressRequestsPerSecond: 100,
    /** Unknown credentials from one address. */
    unknownCredentialsPerMinutePerAddress: 60,
    /** Expensive requests without a credential from one address: quotes, CIDs of code, forward requests. */
    heavyPerMinutePerAddress: 120,
    /** Per account. */
    paymentIntentsPerMinute: 10,
    mintsPerMinutePerAddress: 10,
    /** In any 24 hours; half of them at once, shared by networks (`relayer/middleware/mintBudget.ts`). */
    mintsPerDay: 1_000,
    /** Per account: writes executed without credit, such as revoking a key. */
    freeWritesPerDay: 50,
    /** Per credential: other calls that have an effect and cost nothing, such as changing a webhook. */
    freeChangesPerDay: 10_000,
    keyRequestsPerSecond: 50,
  },
} as const;
export type RateLimits = Readonly<Record<keyof (typeof RATE_LIMITS)["production"], number>>;
