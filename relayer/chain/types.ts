/**
 * What the rest of the relayer knows of the chain: reads that see every answered write, and writes that land exactly once.
 * Source: specification §2 to §4; wire "Requests and answers"; house "Three walks".
 */
import type { Transaction } from "kysely";
import type { Decision } from "../../protocol/decision";
import type { SignedForwardRequest } from "../../protocol/forwardShape";
import type { ContractWrite, Credential, ExecutorAnswer, ExecutorRequest, signedEnvelopeSchema } from "../../protocol/executor";
import type { ErrorCode } from "../../protocol/errors";
import type { AccountId, ActionHash, Address, DerivationPath, GroupId, Hash32, KeyId, PkpId } from "../../protocol/ids";
import type { z } from "zod";
import type { Act } from "../act";
import type { Database } from "../store/database";
import type { SubmissionState } from "./submissions/states";

/** Facts of the network this relayer serves; fixed while it runs. */
export interface NetworkFacts {
  readonly chainId: bigint;
  readonly chainName: string;
  readonly testnet: boolean;
  /** Symbol of the coin gas is paid in. */
  readonly token: string;
  readonly contractAddress: Address;
  readonly keyNamespace: Hash32;
}

/** A key of any kind at the block of the answer. */
export interface KeyState {
  readonly keyId: KeyId;
  readonly accountId: AccountId;
  /** True for the account key; false for a usage key. */
  readonly isAccountKey: boolean;
  /** Set and not expired; for an account key: its account is managed. */
  readonly live: boolean;
  /** Of the account: true in API mode, false in ChainSecured mode. */
  readonly managed: boolean;
  /** Unix seconds; 0 = never. */
  readonly expiresAtSeconds: bigint;
  /** Spending cap over the key's life in US cents; 0 = none. */
  readonly capCents: bigint;
}

export interface AccountView {
  readonly id: AccountId;
  readonly owner: Address;
  readonly managed: boolean;
  /** Nothing but the owner acts. */
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
  /** Somebody gave it: the owner has neither made it nor signed for it. */
  readonly byTransfer: boolean;
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
  /** Bits of `PKP_OPS`; 0 = none denied. */
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

/** Which items of a list: skip `offset`, then at most `limit` (1 to 1,000). */
export interface PageRequest {
  readonly offset: number;
  readonly limit: number;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** How many there are in all. */
  readonly total: number;
}

/** 128 random bits as 32 lower-case hex digits: knowing one is the right to look at its fate. */
export type SubmissionId = string & { readonly __submissionId: true };

/** What a client asked for, on its way to the chain. */
export type SubmitRequest = SubmitCommon & (CredentialWrite | OwnersRequest);

/** A write that a credential allows; the payer is its sender. */
export interface CredentialWrite {
  /** Argument 0 of the write is the hash of this credential; the executor checks it. */
  readonly credential: Credential;
  /** What to write; where that depends on what the contract holds, made when no earlier write of the account is under way any more. */
  readonly write: ContractWrite | (() => Promise<ContractWrite>);
  /** The new owner's signed envelope, for `convertToChainSecuredAccount` only. */
  readonly convert?: z.infer<typeof signedEnvelopeSchema>;
}

/** A call that the owner signed; it goes through the forwarder. Where its nonce is to be asked for, made when the account's turn has come. */
export interface OwnersRequest {
  readonly forward: SignedForwardRequest | (() => Promise<SignedForwardRequest>);
}

export interface SubmitCommon {
  /** Whose write this is: writes of one account go one after another. For a new account: the id it will have. */
  readonly accountId: AccountId;
  /** The route's name (`add_group`): kept with the submission, shown by the operator's tools. */
  readonly kind: string;
  /**
   * Called once after the simulation succeeded and before anything is signed. Throwing stops the write with nothing spent.
   * What it reserves is bound, settled, released or abandoned through `SubmissionHooks`, whatever happens.
   */
  readonly reserve?: (submissionId: SubmissionId) => Promise<void>;
  /** Already scoped by the caller (route, account). A second submit with the same one waits for the first's outcome instead of writing again. */
  readonly idempotencyKey?: string;
  /** Told how far the write has come: whatever is thrown, its end says whether anything may have happened. */
  readonly act?: Pick<Act, "begins" | "cameToNothing" | "happened">;
  readonly requestId?: string;
  /** How long to wait for the outcome before `submission_pending`; default: the chain's own. */
  readonly waitMs?: number;
}

/** What the receipt says, in the wire's words; only what the write made. */
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
  /** True when the idempotency key had been used: this is the outcome of the earlier write. */
  readonly replayed: boolean;
}

/** A failure as it is kept: the code and sentence the route would have answered with. */
export interface SubmissionFailure {
  readonly code: ErrorCode;
  readonly detail: string;
  readonly facts: Readonly<Record<string, unknown>>;
}

/** A submission as `GET /submissions/:id` may show it; never a secret. */
export interface SubmissionView {
  readonly id: SubmissionId;
  readonly accountId: AccountId;
  readonly kind: string;
  readonly state: SubmissionState;
  readonly transactionHash?: Hash32;
  readonly blockNumber?: number;
  readonly result?: WriteResult;
  readonly error?: SubmissionFailure;
  /** The transaction was mined, so that it cost gas: with an error this is a write that reverted when it was mined. */
  readonly charged: boolean;
  /** After a reorg changed the outcome (state `changed`): what had been answered before. */
  readonly before?: { readonly result?: WriteResult; readonly error?: SubmissionFailure };
  readonly createdAt: Date;
}

/** How a submission ended, for the books. */
export interface SubmissionOutcome {
  readonly submissionId: SubmissionId;
  readonly accountId: AccountId;
  readonly kind: string;
  /** Mined, with or without success: it cost us gas, so what was reserved is settled; else it is released. */
  readonly charged: boolean;
}

/** Given by main, so that books and submissions move in the same transactions. Called only for writes that came with a `reserve`; each once for all of a batch. */
export interface SubmissionHooks {
  /** In the transaction that writes the submissions down. Throwing stops the writes with nothing spent. */
  onBegin(submissionIds: readonly SubmissionId[], trx: Transaction<Database>): Promise<void>;
  /** In the transaction that writes the outcomes: once per submission. Settles or releases. */
  onOutcome(outcomes: readonly SubmissionOutcome[], trx: Transaction<Database>): Promise<void>;
  /** The write failed after `reserve` and before it was written down. */
  onAbandon(submissionId: SubmissionId): Promise<void>;
}

/** One contract event of an account, as it stands on the present chain. */
export interface AccountEvent {
  /** Resumes after this event: opaque text; stays valid across restarts and reorgs. */
  readonly cursor: string;
  readonly name: string;
  readonly blockNumber: number;
  readonly transactionHash: Hash32;
  readonly logIndex: number;
  /**
   * Arguments by name: uints as decimal strings, ids and hashes as 0x and 64 digits, addresses checksummed. After a reorg an event that is no longer
   * on the chain is followed by an entry of the same name with `removed: true`.
   */
  readonly args: Readonly<Record<string, unknown>>;
  readonly removed: boolean;
}

export interface EventPage {
  readonly events: readonly AccountEvent[];
  /** The cursor to ask with next; equals the given one when there is nothing new. */
  readonly next: string;
}

export interface Readiness {
  readonly ready: boolean;
  /** One sentence each, for `/ready` and the log. */
  readonly problems: readonly string[];
}

/**
 * The chain room. All reads answer from a block at or after the last write any relayer on this store has answered, and throw
 * `chain_unavailable` when no endpoint can. Ids that are not on chain give `undefined` where the type says so; else the contract's named error
 * (`unknown_account`, `unknown_group` …) is thrown as a KeywrightError.
 */
export interface Chain {
  readonly network: NetworkFacts;

  /** The first of `ids` the contract has ever known (a key's text id before its decoded id). */
  key(ids: readonly KeyId[]): Promise<KeyState | undefined>;
  account(id: AccountId): Promise<AccountView | undefined>;
  group(id: AccountId, groupId: GroupId): Promise<GroupView>;
  groups(id: AccountId, page: PageRequest): Promise<Page<GroupView>>;
  actions(id: AccountId, page: PageRequest): Promise<Page<ActionView>>;
  actionsInGroup(id: AccountId, groupId: GroupId, page: PageRequest): Promise<Page<ActionView>>;
  pkps(id: AccountId, page: PageRequest): Promise<Page<PkpView>>;
  pkpsInGroup(id: AccountId, groupId: GroupId, page: PageRequest): Promise<Page<PkpView>>;
  usageKeys(id: AccountId, page: PageRequest): Promise<Page<UsageKeyView>>;
  /** A set usage key, live or expired, of any account. */
  usageKey(id: KeyId): Promise<UsageKeyView | undefined>;
  /** The PKP of a number (from 1). Throws `unknown_pkp_number`. */
  pkpByNumber(id: AccountId, number: bigint): Promise<PkpId>;
  /** Why a run would be refused, as the contract's enum; allowed is true when it would not. `pkpId` absent asks for key and action only. */
  explainExecution(key: KeyId, action: ActionHash, pkpId?: PkpId): Promise<Decision>;
  apiPayers(): Promise<readonly Address[]>;
  /** The zero address until one is set. */
  adminApiPayer(): Promise<Address>;
  /** The ERC-2771 forwarder that the contract trusts. */
  forwarder(): Promise<Address>;
  /** The signer's next nonce at the forwarder. */
  forwarderNonce(signer: Address): Promise<bigint>;
  /** Gas that the write would take as a call of `owner`. A revert throws the named error. */
  estimateAsOwner(write: ContractWrite, owner: Address): Promise<bigint>;

  /**
   * Accounts whose present owner is this address: its own first, then those somebody transferred to it, each oldest first. Knows of every write that any
   * relayer on this store has answered.
   */
  accountsOwnedBy(owner: Address): Promise<readonly OwnedAccount[]>;

  /** Asks the contract whether the write would succeed now; a revert throws the named error. Nothing is signed or spent. */
  simulate(write: ContractWrite): Promise<void>;

  /**
   * Carries a write to the chain exactly once: waits for the account's turn, simulates, reserves, has it authorised and signed, sends it and waits.
   * @throws KeywrightError the contract's named error (nothing spent); the same with `facts.charged: true` and `transaction_hash` when it reverted
   * as mined; what `reserve` or the executor threw; `no_payer_available`, `queue_full`, `chain_unavailable` (nothing spent);
   * `submission_pending` (504) with `facts.submission_id` when the outcome is not known in time: it is carried on in the background.
   */
  submit(request: SubmitRequest): Promise<SubmitAnswer>;
  submission(id: SubmissionId): Promise<SubmissionView | undefined>;
  submissionByIdempotencyKey(key: string): Promise<SubmissionView | undefined>;

  /** Events of one account after a cursor (from the beginning without one), at most `limit`. Throws `invalid_value` for a cursor that is none. */
  events(id: AccountId, after: string | undefined, limit: number): Promise<EventPage>;

  ready(): Promise<Readiness>;
  /** Figures for the metrics and the operator's tools, from memory and the store; no call to the chain. */
  stats(): Promise<ChainStats>;
  /** Takes no new writes, hands open submissions to whoever comes next, stops every timer. */
  close(): Promise<void>;
}

export interface LaneStats {
  /** 0 is the admin payer. */
  readonly payer: number;
  readonly address: Address;
  readonly balanceWei: bigint;
  readonly nextNonce: number;
  readonly inFlight: number;
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

/** What the chain needs of the executor; `relayer/executorClient.ts` is one. */
export interface ExecutorPort {
  call<C extends ExecutorWriteCall>(name: C, request: ExecutorRequest<C>, context?: { requestId?: string; signal?: AbortSignal }): Promise<ExecutorAnswer<C>>;
}
export type ExecutorWriteCall = "authorizeWrites" | "signAsPayer" | "signForwards" | "signNoop" | "signTopUp" | "payers";
