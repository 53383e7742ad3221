/**
 * Prepares the writes taken for one transaction: encodes and simulates them, limits them to what it can hold, and has
 * the executor authorize each by its own credential. A write that would fail gets its named error; one that does not
 * fit waits for a later transaction, or goes alone.
 */
import { defined } from "../../../protocol/defined";
import { isErrorCode, KeywrightError } from "../../../protocol/errors";
import type { ExecutorAnswer, ExecutorRequest, TaggedCall } from "../../../protocol/executor";
import { forwarderCalldata } from "../../../protocol/forward";
import type { Address } from "../../../protocol/ids";
import type { FeeOracle } from "../payers/fees";
import type { Lane } from "../payers/lanes";
import type { RpcClient } from "../rpc/client";
import type { ExecutorPort } from "../types";
import { limitOfForwards, simulateForward } from "./forwards";
import type { Simulation } from "./simulation";
import {
  bytesOf,
  contentOf,
  isMadeInTurn,
  mayShare,
  type AuthorizedWrite,
  type WriteInTurn,
  type EncodedWrite,
  type TakenWrites,
  type SimulatedWrite,
} from "./waitingWrites";

export interface PreparationOptions {
  readonly simulation: Simulation;
  readonly fees: FeeOracle;
  readonly rpc: RpcClient;
  readonly maxTransactionGas: bigint;
  readonly forwarder: () => Promise<Address>;
  /** The minimum block for reads. */
  readonly minBlock: () => Promise<number>;
  /** Its payer is the sender. */
  readonly lane: Lane;
  readonly taken: TakenWrites;
}

/** Nodes accept no transaction above 128 KiB. */
const MAX_BYTES_TOGETHER = 120_000;

export class Preparation {
  readonly #options: PreparationOptions;

  constructor(options: PreparationOptions) {
    this.#options = options;
  }

  /** Encodes the writes; those that depend on contract state are made now. */
  async make(inTurn: readonly WriteInTurn[]): Promise<readonly EncodedWrite[]> {
    const { taken } = this.#options;
    const made = await taken.each(inTurn, async (item): Promise<EncodedWrite> => {
      const content = await contentOf(item.waiting.request);
      return { ...item, content, calldata: bytesOf(content) };
    });
    if (made.length === 1) return made;
    for (const item of made) if (!mayShare(item.content)) taken.sendAlone(item);
    return made.filter(({ content }) => mayShare(content));
  }

  /** Estimates the gas of each write; one that would fail is refused with its named error. */
  async simulate(made: readonly EncodedWrite[]): Promise<readonly SimulatedWrite[]> {
    const { simulation, lane, taken } = this.#options;
    const [only] = made;
    if (made.length <= 1 || only === undefined) return this.#eachAlone(made);
    if ("forward" in only.content) return this.#simulateForwards(made);
    const answers = await simulation.together(
      made.map(({ calldata }) => calldata),
      lane.address,
    );
    const found = await Promise.all(
      made.map(async (item, index): Promise<SimulatedWrite | undefined> => {
        const answer = answers[index];
        if (answer === undefined) return taken.later(item);
        if ("refused" in answer) return taken.drop(item.waiting, answer.refused);
        if (!simulation.fitsIntoBatch(item.calldata, answer.gas)) return taken.sendAlone(item);
        return { ...item, gas: answer.gas };
      }),
    );
    return found.filter((item) => item !== undefined);
  }

  /** Requests that succeed individually may fail in sequence, so they are simulated in sequence. */
  async #simulateForwards(made: readonly EncodedWrite[]): Promise<readonly SimulatedWrite[]> {
    const { simulation, forwarder, lane, taken } = this.#options;
    const calls = made.flatMap(({ content }) =>
      "forward" in content ? [forwarderCalldata([content.forward], lane.address)] : [],
    );
    const probed = await simulation.inSequence(await forwarder(), calls, lane.address);
    if (probed === undefined) return this.#eachAlone(made);
    const found = await Promise.all(
      made.map(async (item, index): Promise<SimulatedWrite | undefined> => {
        const answer = probed[index];
        if (answer === undefined) return taken.later(item);
        if (answer.succeeded) return { ...item, gas: answer.gas };
        // The forwarder gives no reason: simulated alone, the request fails with a named error, or is sent alone.
        const tried = await this.#tryAlone(item);
        return tried === undefined ? undefined : taken.sendAlone(item);
      }),
    );
    return found.filter((item) => item !== undefined);
  }

  async #eachAlone(made: readonly EncodedWrite[]): Promise<readonly SimulatedWrite[]> {
    const tried = await Promise.all(made.map((item) => this.#tryAlone(item)));
    return tried.filter((item) => item !== undefined);
  }

  async #tryAlone(item: EncodedWrite): Promise<SimulatedWrite | undefined> {
    const { taken } = this.#options;
    try {
      return { ...item, gas: await this.#gasAlone(item) };
    } catch (error) {
      // Another request of the signer was mined meanwhile: build this one again with the next nonce.
      if (error instanceof KeywrightError && error.code === "forward_nonce_used" && isMadeInTurn(item.waiting.request))
        return taken.later(item);
      return taken.drop(item.waiting, error);
    }
  }

  #gasAlone({ content, calldata }: EncodedWrite): Promise<bigint> {
    const { simulation, rpc, forwarder, minBlock, lane } = this.#options;
    if ("write" in content) return simulation.alone(calldata, lane.address);
    return simulateForward(content.forward, { rpc, forwarder, minBlock, payer: lane.address });
  }

  /** Limits the batch to what one transaction may hold and the lane can pay for; returns its gas limit. */
  async bound(
    tried: readonly SimulatedWrite[],
    isAlone: boolean,
  ): Promise<{ readonly tried: readonly SimulatedWrite[]; readonly gasLimit: bigint }> {
    const { simulation, maxTransactionGas, fees, lane, taken } = this.#options;
    const [only] = tried;
    if (isAlone && only !== undefined) return { tried, gasLimit: simulation.limitAlone(only.gas) };
    const affordable = lane.balanceWei / (await fees.now()).maxFeePerGas;
    const mostGas = affordable < maxTransactionGas ? affordable : maxTransactionGas;
    let kept = tried;
    while (kept.length > 1 && (this.#limitTogether(kept) > mostGas || sizeOf(kept) > MAX_BYTES_TOGETHER))
      kept = kept.slice(0, -1);
    for (const item of tried.slice(kept.length)) taken.later(item);
    return { tried: kept, gasLimit: this.#limitTogether(kept) };
  }

  #limitTogether(tried: readonly SimulatedWrite[]): bigint {
    const forwards = tried.flatMap(({ content, gas }) =>
      "forward" in content ? [{ request: content.forward, gas }] : [],
    );
    if (forwards.length > 0) return limitOfForwards(forwards);
    const { simulation } = this.#options;
    const [only] = tried;
    return tried.length === 1 && only !== undefined ? simulation.limitLeftAlone(only) : simulation.limitTogether(tried);
  }
}

const sizeOf = (tried: readonly SimulatedWrite[]): number =>
  tried.reduce((sum, { calldata }) => sum + calldata.length / 2, 0);

/** A forward request is authorized by its signature. */
export async function authorize(
  executor: ExecutorPort,
  tried: readonly SimulatedWrite[],
  taken: TakenWrites,
): Promise<readonly AuthorizedWrite[]> {
  const [first] = tried;
  if (first === undefined) return [];
  if ("forward" in first.content)
    return tried.map((item) => ({ ...item, call: { calldata: item.calldata, tag: null } }));
  const { requestId } = first.waiting.request;
  const writes = tried.map(writeToAuthorize);
  const answer = await executor.call("authorizeWrites", { writes }, requestId === undefined ? {} : { requestId });
  return taken.each(
    tried.map((item, index) => ({ item, verdict: answer.writes[index], waiting: item.waiting })),
    async ({ item, verdict }): Promise<AuthorizedWrite> => ({ ...item, call: callIn(verdict) }),
  );
}

function writeToAuthorize({
  waiting: { request },
  content,
}: SimulatedWrite): ExecutorRequest<"authorizeWrites">["writes"][number] {
  if (!("credential" in request && "write" in content))
    throw new TypeError("only a write with its credential is authorised");
  return { credential: request.credential, write: content.write, ...defined({ convert: request.convert }) };
}

function callIn(verdict: ExecutorAnswer<"authorizeWrites">["writes"][number] | undefined): TaggedCall {
  if (verdict === undefined)
    throw new KeywrightError(
      "executor_unavailable",
      "The executor left a write unanswered. Nothing was sent or charged.",
    );
  if (!("refused" in verdict)) return verdict;
  const { code, detail, facts, retryAfterSeconds } = verdict.refused;
  if (!isErrorCode(code))
    throw new KeywrightError("executor_unavailable", "The executor refused for a reason this service does not know.");
  throw new KeywrightError(code, detail, facts ?? {}, retryAfterSeconds === undefined ? {} : { retryAfterSeconds });
}
