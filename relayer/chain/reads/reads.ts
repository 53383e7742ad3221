/** Reads of the contract, each from a block at or after the last answered write. */
import { noncesCall } from "../abi/forwarder";
import { toBeHex } from "ethers";
import { MalformedAnswer } from "../../../protocol/abi";
import { decodeDecision, encodeQuestion } from "../../../protocol/decision";
import { budgetsAddressOf, decodeUsedNow, encodeUsedNow, type Budget, type UsedNow } from "../../../protocol/budgets";
import { KeywrightError } from "../../../protocol/errors";
import { hash32FromUint, MAX_U64, ZERO_ADDRESS } from "../../../protocol/ids";
import type { AccountId, ActionHash, Address, DerivationPath, GroupId, KeyId, PkpId } from "../../../protocol/ids";
import type {
  AccountInfoStructOutput as AccountInfo,
  ActionInfoStructOutput as ActionInfo,
  GroupInfoStructOutput as GroupInfo,
  PkpInfoStructOutput as PkpInfo,
  ScheduledPayerStructOutput as ScheduledPayer,
  UsageApiKeyInfoStructOutput as UsageApiKeyInfo,
} from "../../../typechain-types/contracts/AccountManager";
import { keyAnswer, keyQuestion, type KeyState } from "../../../protocol/keyState";
import type { RpcCall } from "../../../protocol/rpc/endpoint";
import { isAboutTheCall, lacksGas, RpcError } from "../../../protocol/rpc/errors";
import { isValidSignatureCall, saysValid } from "../abi/contractSignatures";
import { readError } from "../abi/reverts";
import type { RpcClient } from "../rpc/client";
import { quantityOf } from "../rpc/quantities";
import type { AccountView, ActionView, Chain, GroupView, Page, PageRequest, PkpView, UsageKeyView } from "../types";
import { decodeResult, encodeView, type ViewArgument } from "../abi/views";

/** The contract lists no more at once. */
const USAGE_KEYS_PER_CALL = 200;
/** Enough for a Safe of many owners. The called contract is anybody's. */
const SIGNATURE_GAS = 1_000_000;
/** Nodes limit how many calls an exchange may hold. */
const CALLS_PER_EXCHANGE = 40;

interface Question {
  readonly name: string;
  readonly args: readonly ViewArgument[];
}

export interface ReadsOptions {
  readonly rpc: RpcClient;
  readonly contractAddress: Address;
  /** The minimum block for reads. */
  readonly minBlock: () => Promise<number>;
}

export class Reads {
  #forwarder: Address | undefined;
  readonly #options: ReadsOptions;

  constructor(options: ReadsOptions) {
    this.#options = options;
  }

  async key(ids: readonly KeyId[]): Promise<KeyState | undefined> {
    for (const id of ids) {
      const [answer] = await this.#call([keyQuestion(id)]);
      const state = ofTheContract(() => keyAnswer(id, answer));
      if (state !== undefined) return state;
    }
    return undefined;
  }

  async account(id: AccountId): Promise<AccountView | undefined> {
    const [account] = await this.accounts([id]);
    return account;
  }

  /** Several accounts at once; undefined for unknown ones. */
  async accounts(ids: readonly AccountId[]): Promise<readonly (AccountView | undefined)[]> {
    return Promise.all(
      ids.map(async (id) => {
        const [info] = (await orUndefined("unknown_account", this.#ask("getAccount", [id]))) ?? [];
        return info === undefined ? undefined : accountView(info as AccountInfo);
      }),
    );
  }

  async group(id: AccountId, groupId: GroupId): Promise<GroupView> {
    const [info] = await this.#ask("getGroup", [id, groupId]);
    return groupView(info as GroupInfo);
  }

  async groups(id: AccountId, page: PageRequest): Promise<Page<GroupView>> {
    return this.#page("listGroups", [id], page, (item) => groupView(item as GroupInfo));
  }

  async actions(id: AccountId, page: PageRequest): Promise<Page<ActionView>> {
    return this.#page("listActions", [id], page, (item) => actionView(item as ActionInfo));
  }

  async actionsInGroup(id: AccountId, groupId: GroupId, page: PageRequest): Promise<Page<ActionView>> {
    return this.#page("listActionsInGroup", [id, groupId], page, (item) => actionView(item as ActionInfo));
  }

  async pkps(id: AccountId, page: PageRequest): Promise<Page<PkpView>> {
    return this.#page("listPkps", [id], page, (item) => pkpView(item as PkpInfo));
  }

  async pkpsInGroup(id: AccountId, groupId: GroupId, page: PageRequest): Promise<Page<PkpView>> {
    return this.#page("listPkpsInGroup", [id, groupId], page, (item) => pkpView(item as PkpInfo));
  }

  async usageKeys(id: AccountId, page: PageRequest): Promise<Page<UsageKeyView>> {
    const view = (item: unknown): UsageKeyView => usageKeyView(item as UsageApiKeyInfo);
    return this.#page("listUsageApiKeys", [id], page, view, USAGE_KEYS_PER_CALL);
  }

  async usageKey(id: KeyId): Promise<UsageKeyView | undefined> {
    const [info] = (await orUndefined("unknown_usage_key", this.#ask("getUsageApiKey", [id]))) ?? [];
    return info === undefined ? undefined : usageKeyView(info as UsageApiKeyInfo);
  }

  async pkpByNumber(id: AccountId, number: bigint): Promise<PkpId> {
    if (number > MAX_U64) throw new KeywrightError("unknown_pkp_number", `The account has no PKP of number ${number}.`);
    const [address] = await this.#ask("pkpByNumber", [id, number]);
    return address as PkpId;
  }

  async explainExecution(key: KeyId, action: ActionHash, pkpId?: PkpId): ReturnType<Chain["explainExecution"]> {
    const [answer] = await this.#call([encodeQuestion(key, action, pkpId)]);
    return ofTheContract(() => decodeDecision(answer));
  }

  /** The block of the last answered write; decisions must not be based on an older one. */
  lastWrite(): Promise<number> {
    return this.#options.minBlock();
  }

  async apiPayers(): Promise<readonly Address[]> {
    const [payers] = await this.#ask("apiPayers", []);
    return [...(payers as Address[])];
  }

  async everyPayer(): Promise<readonly Address[]> {
    const [acting, admin, [scheduled], [nextAdmin]] = await Promise.all([
      this.apiPayers(),
      this.adminApiPayer(),
      this.#ask("scheduledApiPayers", []),
      this.#ask("scheduledAdminApiPayer", []),
    ]);
    const next = [...(scheduled as ScheduledPayer[]), nextAdmin as ScheduledPayer];
    const all = [...acting, admin, ...next.map(({ payer }) => payer as Address)];
    return all.filter((payer) => payer !== ZERO_ADDRESS);
  }

  async adminApiPayer(): Promise<Address> {
    const [payer] = await this.#ask("adminApiPayer", []);
    return payer as Address;
  }

  /** Immutable: read once. */
  async forwarder(): Promise<Address> {
    this.#forwarder ??= (await this.#ask("trustedForwarder", []))[0] as Address;
    return this.#forwarder;
  }

  async forwarderNonce(signer: Address): Promise<bigint> {
    const { rpc, minBlock } = this.#options;
    const call = { to: await this.forwarder(), data: noncesCall(signer) };
    const { values } = await rpc.callAt(await minBlock(), (block) => [{ method: "eth_call", params: [call, block] }]);
    return BigInt(values[0] as string);
  }

  async isValidSignature(contract: Address, digest: string, signature: string): Promise<boolean> {
    const { rpc, minBlock } = this.#options;
    const call = { to: contract, data: isValidSignatureCall(digest, signature), gas: toBeHex(SIGNATURE_GAS) };
    const callsAt = (block: string): RpcCall[] => [{ method: "eth_call", params: [call, block] }];
    try {
      return saysValid((await rpc.callAt(await minBlock(), callsAt)).values[0]);
    } catch (error) {
      if (error instanceof RpcError && isAboutTheCall(error.failure)) return false;
      throw error;
    }
  }

  /**
   * In calls of as many items as an endpoint has gas for, all at one block. An item with the longest texts costs
   * 80,000, so that a thousand take more than many nodes give a call.
   */
  async #page<T>(
    name: string,
    args: readonly ViewArgument[],
    page: PageRequest,
    view: (item: unknown) => T,
    most = page.limit,
  ): Promise<Page<T>> {
    for (let size = Math.max(1, Math.min(most, page.limit)); ; size = Math.ceil(size / 2)) {
      try {
        const answers = await this.#askAll(partsOf(page, size).map((part) => ({ name, args: [...args, ...part] })));
        return { items: answers.flatMap(([items]) => (items as unknown[]).map(view)), total: Number(answers[0]?.[1]) };
      } catch (error) {
        if (size === 1 || !isForLackOfGas(error)) throw error;
      }
    }
  }

  async #ask(name: string, args: readonly ViewArgument[]): Promise<readonly unknown[]> {
    const [answer] = await this.#askAll([{ name, args }]);
    return answer ?? [];
  }

  async #askAll(questions: readonly Question[]): Promise<readonly (readonly unknown[])[]> {
    const answers = await this.#call(questions.map(({ name, args }) => encodeView(name, args)));
    return questions.map(({ name }, index) => ofTheContract(() => decodeResult(name, answers[index])));
  }

  async budgetsUsed(budgets: readonly Budget[]): Promise<readonly UsedNow[]> {
    const address = budgetsAddressOf(this.#options.contractAddress);
    if (budgets.length === 0) return [];
    const answers = await this.#call(budgets.map(encodeUsedNow), address);
    return answers.map((answer) => ofTheContract(() => decodeUsedNow(answer)));
  }

  /** Takes calldata, returns raw results, all from one block. */
  async #call(questions: readonly string[], to = this.#options.contractAddress): Promise<readonly unknown[]> {
    try {
      return await this.#exchanges(questions.map((data) => ({ to, data })));
    } catch (error) {
      throw readError(error);
    }
  }

  async #exchanges(transactions: readonly { readonly to: Address; readonly data: string }[]): Promise<unknown[]> {
    const { rpc, minBlock } = this.#options;
    const callsAt = (block: string, from: number): RpcCall[] =>
      transactions
        .slice(from, from + CALLS_PER_EXCHANGE)
        .map((transaction) => ({ method: "eth_call", params: [transaction, block] }));
    const { values, blockNumber } = await rpc.callAt(await minBlock(), (block) => callsAt(block, 0));
    const all = [...values];
    while (all.length < transactions.length)
      all.push(...(await rpc.callTogether(callsAt(quantityOf(blockNumber), all.length))));
    return all;
  }
}

/** The offsets and limits of the calls that make up a page; one call for an empty page, which also has a total. */
function partsOf({ offset, limit }: PageRequest, size: number): [offset: number, limit: number][] {
  const count = Math.max(1, Math.ceil(limit / size));
  return Array.from({ length: count }, (_, at) => [offset + at * size, Math.min(size, limit - at * size)]);
}

const isForLackOfGas = (error: unknown): boolean =>
  error instanceof KeywrightError && error.cause instanceof RpcError && lacksGas(error.cause);

const noContract = (): KeywrightError =>
  new KeywrightError("chain_unavailable", "There is no account contract at the configured address of this chain.");

function ofTheContract<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof MalformedAnswer ? noContract() : error;
  }
}

async function orUndefined<T>(code: string, answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof KeywrightError && error.code === code) return undefined;
    throw error;
  }
}

function accountView(info: AccountInfo): AccountView {
  return {
    id: hash32FromUint(info.id) as AccountId,
    owner: info.adminWalletAddress as Address,
    managed: info.managed,
    frozen: info.frozen,
    name: info.name,
    description: info.description,
    groupCount: Number(info.groupCount),
    actionCount: Number(info.actionCount),
    pkpCount: Number(info.pkpCount),
    usageKeyCount: Number(info.usageApiKeyCount),
  };
}

function groupView(info: GroupInfo): GroupView {
  return {
    id: info.id as GroupId,
    name: info.name,
    description: info.description,
    pkpCount: Number(info.pkpCount),
    actionCount: Number(info.actionCount),
  };
}

function actionView(info: ActionInfo): ActionView {
  return { hash: hash32FromUint(info.actionHash) as ActionHash, name: info.name, description: info.description };
}

function pkpView(info: PkpInfo): PkpView {
  return {
    number: Number(info.number),
    walletAddress: info.pkpId as PkpId,
    derivationPath: toBeHex(info.derivationPath, 32) as DerivationPath,
    name: info.name,
    description: info.description,
    deniedOps: info.deniedOps,
  };
}

function usageKeyView(info: UsageApiKeyInfo): UsageKeyView {
  return {
    id: hash32FromUint(info.id) as KeyId,
    accountId: hash32FromUint(info.accountId) as AccountId,
    expiresAtSeconds: info.expiration,
    capCents: info.balance,
    name: info.name,
    description: info.description,
    canCreateGroups: info.createGroups,
    canDeleteGroups: info.deleteGroups,
    canCreatePkps: info.createPKPs,
    manageIpfsIdsInGroups: [...info.manageIPFSIdsInGroups],
    addPkpToGroups: [...info.addPkpToGroups],
    removePkpFromGroups: [...info.removePkpFromGroups],
    executeInGroups: [...info.executeInGroups],
  };
}
