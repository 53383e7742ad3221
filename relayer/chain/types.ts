/**
 * The interface of the chain module for the rest of the relayer: reads that see every answered write, and writes that
 * are executed exactly once.
 */
import type { Transaction } from "kysely";
import type { SignedForwardRequest } from "../../protocol/forwardShape";
import type {
  ContractWrite,
  ExecutorAnswer,
  ExecutorRequest,
  WriteCredential,
  consentSchema,
} from "../../protocol/executor";
import type { Budget, UsedNow } from "../../protocol/budgets";
import type { ErrorCode } from "../../protocol/errors";
import type { ExportRow } from "../../protocol/exports";
import type { Decision } from "../../protocol/decision";
import type { KeyState } from "../../protocol/keyState";
import type { AccountId, ActionHash, Address, DerivationPath, GroupId, Hash32, KeyId, PkpId } from "../../protocol/ids";
import type { z } from "zod";
import type { IdempotentOperation } from "../idempotentOperation";
import type { Database } from "../store/database";
import type { LogSource } from "./events/logSource";
import type { EndpointHead } from "./rpc/client";
import type { SubmissionState } from "./submissions/states";

/** Constants of the network this relayer serves. */
export interface NetworkFacts {
  readonly chainId: bigint;
  readonly chainName: string;
  readonly testnet: boolean;
  /** Symbol of the gas token. */
  readonly token: string;
  readonly contractAddress: Address;
  readonly keyNamespace: Hash32;
  readonly budgetsAddress: Address;
}

export interface AccountView {
  readonly id: AccountId;
  readonly owner: Address;
  readonly managed: boolean;
  /** Only the owner can act. */
  readonly frozen: boolean;
  readonly name: string;
  readonly description: string;
  readonly groupCount: number;
  readonly actionCount: number;
  readonly pkpCount: number;
  readonly usageKeyCount: number;
}

export interface OwnedAccount {
  readonly id: AccountId;
  /** Handed over to the owner, who has done nothing with it: see `Events.accountsEverOwnedBy`. */
  readonly isGiven: boolean;
}

/** An address as a PKP of an account. */
export interface Registration {
  readonly accountId: AccountId;
  readonly derivationPath: DerivationPath;
}

export interface GroupView {
  readonly id: GroupId;
  readonly name: string;
  readonly description: string;
  readonly pkpCount: number;
  readonly actionCount: number;
}

/** Zero hash = "any action" (name empty, as on chain). */
export interface ActionView {
  readonly hash: ActionHash;
  readonly name: string;
  readonly description: string;
}

/** Number 0 and the zero address = "any PKP". */
export interface PkpView {
  readonly number: number;
  readonly walletAddress: PkpId;
  readonly derivationPath: DerivationPath;
  readonly name: string;
  readonly description: string;
  /** The bits of denied ops; 0 = none denied. */
  readonly deniedOps: bigint;
}

export interface UsageKeyView {
  readonly id: KeyId;
  readonly accountId: AccountId;
  readonly expiresAtSeconds: bigint;
  readonly capCents: bigint;
  readonly name: string;
  readonly description: string;
  readonly canCreateGroups: boolean;
  readonly canDeleteGroups: boolean;
  readonly canCreatePkps: boolean;
  readonly manageIpfsIdsInGroups: readonly bigint[];
  readonly addPkpToGroups: readonly bigint[];
  readonly removePkpFromGroups: readonly bigint[];
  readonly executeInGroups: readonly bigint[];
}

/** A slice of a list: skip `offset`, then at most `limit` items (1 to 1,000). */
export interface PageRequest {
  readonly offset: number;
  readonly limit: number;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** Total number of items. */
  readonly total: number;
}

/** 128 random bits as 32 lower-case hex digits. A bearer capability: the id grants read access to the status. */
export type SubmissionId = string & { readonly __submissionId: true };

/** A client's write on its way to the chain. */
export type SubmitRequest = SubmitCommon & (CredentialWrite | OwnersRequest);

/** A write permitted by a credential; a payer is the sender. */
export interface CredentialWrite {
  /** Argument 0 of the write is the hash of this credential, which the executor verifies. */
  readonly credential: WriteCredential;
  /**
   * The write; a function if it depends on contract state, called once no earlier write of the account is in progress.
   */
  readonly write: ContractWrite | (() => Promise<ContractWrite>);
  /** The new owner's consent, for `convertToChainSecuredAccount` only. */
  readonly convert?: z.infer<typeof consentSchema>;
}

/**
 * A call signed by the owner, sent through the forwarder; a function if its nonce must be read first, called when the
 * account's turn comes.
 */
export interface OwnersRequest {
  /** The signer, whose forwarder nonce the request takes: requests of one signer are serialized. */
  readonly signer: Address;
  readonly forward: SignedForwardRequest | (() => Promise<SignedForwardRequest>);
}

export interface SubmitCommon {
  /** The account, whose writes are serialized. For a new account: its future id. */
  readonly accountId: AccountId;
  /** The route's name (`add_group`): stored with the submission and shown by operator tools. */
  readonly kind: string;
  /** The usage key that asks for it, whose writes wait for each other before they wait for the account's. */
  readonly usageKey?: KeyId;
  /** Called before the write takes a place in its account's queue; throws when the caller may not have one. */
  readonly admit?: () => Promise<void>;
  /**
   * Called once after a successful simulation and before anything is signed. If it throws, the write stops at no cost.
   * The reservation is always bound, settled, released or abandoned through `SubmissionHooks`. False if nothing is
   * held: the write costs its account nothing.
   */
  readonly reserve?: (submissionId: SubmissionId) => Promise<boolean>;
  /**
   * Already scoped by the caller (route, account). Another submit with the same key waits for the first one's outcome
   * instead of writing again.
   */
  readonly idempotencyKey?: string;
  /** Records whether the write may have had an effect; errors thrown do not tell. */
  readonly operation?: Pick<IdempotentOperation, "begins" | "cameToNothing" | "happened">;
  readonly requestId?: string;
  /** How long to wait for the outcome before `submission_pending`; defaults to the tuning's `answerWithinMs`. */
  readonly waitMs?: number;
}

/** What the write created, from its receipt, in the API's terms. */
export interface WriteResult {
  /** Decimal. */
  readonly group_id?: string;
  readonly wallet_address?: Address;
  readonly derivation_path?: DerivationPath;
  readonly api_key_hash?: Hash32;
}

export interface SubmitAnswer {
  readonly submissionId: SubmissionId;
  readonly transactionHash: Hash32;
  readonly blockNumber: number;
  readonly result: WriteResult;
  /** True when the idempotency key was used before: this is the earlier write's outcome. */
  readonly replayed: boolean;
}

/** A stored failure: the code and detail of the route's error response. */
export interface SubmissionFailure {
  readonly code: ErrorCode;
  readonly detail: string;
  readonly facts: Readonly<Record<string, unknown>>;
}

/** A submission as `GET /submissions/:id` shows it; contains no secret. */
export interface SubmissionView {
  readonly id: SubmissionId;
  readonly accountId: AccountId;
  readonly kind: string;
  readonly state: SubmissionState;
  readonly transactionHash?: Hash32;
  readonly blockNumber?: number;
  readonly result?: WriteResult;
  readonly error?: SubmissionFailure;
  /** Its account has paid its price; together with an error, the write reverted when mined. */
  readonly charged: boolean;
  /** With state `changed` (after a reorg): the outcome reported before. */
  readonly before?: { readonly result?: WriteResult; readonly error?: SubmissionFailure };
  readonly createdAt: Date;
}

/** How a submission ended, for credits. */
export interface SubmissionOutcome {
  readonly submissionId: SubmissionId;
  readonly accountId: AccountId;
  readonly kind: string;
  /** Mined, successfully or not, at its own cost: the reservation is settled; otherwise it is released. */
  readonly charged: boolean;
  /** It was charged, and is on the chain no more: a reorg dropped it, and it will not be sent again. */
  readonly isUndone?: boolean;
}

/**
 * Provided by main, so that credits and submissions change in the same transactions. Called only for writes for which
 * `reserve` holds something; once for a whole batch.
 */
export interface SubmissionHooks {
  /** In the transaction that stores the submissions. If it throws, the writes stop at no cost. */
  onBegin(submissionIds: readonly SubmissionId[], trx: Transaction<Database>): Promise<void>;
  /** In the transaction that stores the outcomes, once per submission, and again if undone. Settles or releases. */
  onOutcome(outcomes: readonly SubmissionOutcome[], trx: Transaction<Database>): Promise<void>;
  /** The write failed after `reserve` and before it was stored. */
  onAbandon(submissionId: SubmissionId): Promise<void>;
}

/** A contract event of an account, as on the canonical chain. */
export interface AccountEvent {
  /** Resumes after this event: an opaque text, valid across restarts and reorgs. */
  readonly cursor: string;
  readonly name: string;
  readonly blockNumber: number;
  readonly transactionHash: Hash32;
  readonly logIndex: number;
  /**
   * Arguments by name: uints as decimal strings, ids and hashes as 0x and 64 digits, addresses checksummed. An
   * event that is no longer canonical after a reorg, or is listed before one that precedes it on the chain, is followed
   * by an entry of the same name with `removed: true`.
   */
  readonly args: Readonly<Record<string, unknown>>;
  readonly removed: boolean;
}

/** Which events come first. */
export type EventOrder = "oldest" | "newest";

export interface EventPage {
  readonly events: readonly AccountEvent[];
  /** The cursor for the next request; equals the given one when there is nothing new. */
  readonly next: string;
}

export interface Readiness {
  readonly ready: boolean;
  /** One sentence each, for `/ready` and the log. */
  readonly problems: readonly string[];
}

/**
 * The chain module. All reads are served from a block at or after the last write answered by any relayer on this store,
 * and throw `chain_unavailable` when no endpoint can serve them. Unknown ids yield `undefined` where the type says so;
 * otherwise the contract's named error (`unknown_account`, `unknown_group` …) is thrown as a KeywrightError.
 */
export interface Chain {
  readonly network: NetworkFacts;
  /** Logs of other contracts on this chain. */
  readonly logs: LogSource;

  /** The first of `ids` that the contract has ever known (a key's text id before its decoded id). */
  key(ids: readonly KeyId[]): Promise<KeyState | undefined>;
  account(id: AccountId): Promise<AccountView | undefined>;
  group(id: AccountId, groupId: GroupId): Promise<GroupView>;
  groups(id: AccountId, page: PageRequest): Promise<Page<GroupView>>;
  actions(id: AccountId, page: PageRequest): Promise<Page<ActionView>>;
  actionsInGroup(id: AccountId, groupId: GroupId, page: PageRequest): Promise<Page<ActionView>>;
  pkps(id: AccountId, page: PageRequest): Promise<Page<PkpView>>;
  pkpsInGroup(id: AccountId, groupId: GroupId, page: PageRequest): Promise<Page<PkpView>>;
  usageKeys(id: AccountId, page: PageRequest): Promise<Page<UsageKeyView>>;
  /** A usage key of any account, live or expired. */
  usageKey(id: KeyId): Promise<UsageKeyView | undefined>;
  /** What was leased of each budget in its present window. */
  budgetsUsed(budgets: readonly Budget[]): Promise<readonly UsedNow[]>;
  /** The PKP of a number (from 1). Throws `unknown_pkp_number`. */
  pkpByNumber(id: AccountId, number: bigint): Promise<PkpId>;
  /** Why the contract would refuse a run, if it would. Without `pkpId`, checks key and action only. */
  explainExecution(key: KeyId, action: ActionHash, pkpId?: PkpId): Promise<Decision>;
  /** The block of the last answered write: the minimum block for contract reads made elsewhere. */
  lastWrite(): Promise<number>;
  apiPayers(): Promise<readonly Address[]>;
  /** Those that act and those that are to act, with the admin payers. */
  everyPayer(): Promise<readonly Address[]>;
  /** The zero address until one is set. */
  adminApiPayer(): Promise<Address>;
  /** The ERC-2771 forwarder that the contract trusts. */
  forwarder(): Promise<Address>;
  /** The signer's next nonce at the forwarder. */
  forwarderNonce(signer: Address): Promise<bigint>;
  /** Whether this contract calls the signature its own (ERC-1271); false for an address without code. */
  isValidSignature(contract: Address, digest: string, signature: string): Promise<boolean>;
  /** Estimated gas of the write as a call of `owner`. A revert throws the named error. */
  estimateAsOwner(write: ContractWrite, owner: Address): Promise<bigint>;

  /**
   * Accounts currently owned by this address: its own first, then those given to it, each oldest first. Includes
   * every write that any relayer on this store has answered.
   */
  accountsOwnedBy(owner: Address): Promise<readonly OwnedAccount[]>;

  /** Whether others handed the account to this owner, who has not written to it since. */
  isGiven(id: AccountId, owner: Address): Promise<boolean>;

  /** The accounts that have registered this address as a PKP, oldest first, at most 20. */
  registrationsOf(wallet: Address): Promise<readonly Registration[]>;

  /** Checks whether the write would succeed now; a revert throws the named error. Nothing is signed or spent. */
  simulate(write: ContractWrite): Promise<void>;

  /**
   * Executes a write exactly once: waits for the account's turn, simulates, reserves credit, has it authorized and
   * signed, sends it and waits.
   * @throws KeywrightError the contract's named error (no cost); the same with `transaction_hash`, and
   * `facts.charged: true` if its account paid for it, when it reverted as mined; any error of `reserve` or the
   * executor; `no_payer_available`, `queue_full`, `chain_unavailable` (no cost); `submission_pending` (504) with
   * `facts.submission_id` when the outcome is not known in time: the write continues in the background.
   */
  submit(request: SubmitRequest): Promise<SubmitAnswer>;
  submission(id: SubmissionId): Promise<SubmissionView | undefined>;
  /** Writes older than the cursor, newest first. @throws KeywrightError `invalid_value` for another cursor. */
  exportWrites(accountId: AccountId, after: string | undefined, rows: number): Promise<ExportRow[]>;
  submissionByIdempotencyKey(key: string): Promise<SubmissionView | undefined>;

  /** The ids of groups that list one of these PKPs or actions, removed groups possibly among them. */
  groupsListing(id: AccountId, members: readonly (PkpId | ActionHash)[]): Promise<ReadonlySet<string>>;
  /** The members of each of these groups, the first 100 of each kind, in the order in which they were added. */
  membersOf(id: AccountId, groups: readonly string[]): Promise<ReadonlyMap<string, GroupMembers>>;

  /**
   * Events of one account after a cursor (from the beginning without one), at most `limit`. Throws `invalid_value` for
   * an invalid cursor.
   */
  events(id: AccountId, after: string | undefined, limit: number, order?: EventOrder): Promise<EventPage>;

  ready(): Promise<Readiness>;
  /**
   * The newest block of each RPC endpoint, by its index in the list (from 1); undefined for one that does not answer in
   * time.
   */
  endpointHeads(withinMs: number): Promise<readonly EndpointHead[]>;

  /** Figures for the metrics and the operator's tools, from memory and the store; does not call the chain. */
  stats(): Promise<ChainStats>;
  /** Accepts no new writes, releases open submissions to other instances, stops every timer. */
  close(): Promise<void>;
}

export interface GroupMembers {
  readonly pkps: readonly PkpId[];
  readonly actions: readonly ActionHash[];
}

export interface LaneStats {
  /** 0 is the admin payer. */
  readonly payer: number;
  readonly address: Address;
  readonly balanceWei: bigint;
  readonly nextNonce: number;
  readonly inFlight: number;
  /** No payer is wanted here any more; it finishes what it has. */
  readonly draining: boolean;
  readonly usable: boolean;
}

export interface ChainStats {
  readonly lanes: readonly LaneStats[];
  /** Submissions by state, open ones only. */
  readonly open: Readonly<Partial<Record<SubmissionState, number>>>;
  readonly waiting: number;
  readonly headBlock: number;
  readonly headAgeSeconds: number;
  readonly followedBlock: number;
}

/** What the chain needs of the executor; implemented by `relayer/executor/client.ts`. */
export interface ExecutorPort {
  call<C extends ExecutorWriteCall>(
    name: C,
    request: ExecutorRequest<C>,
    context?: { requestId?: string; signal?: AbortSignal },
  ): Promise<ExecutorAnswer<C>>;
}
export type ExecutorWriteCall =
  "authorizeWrites" | "signAsPayer" | "signForwards" | "signNoop" | "signTopUp" | "payers";
