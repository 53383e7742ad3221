/** Reads on which n endpoints agree at the same block. With n = 1 the other endpoints are only fallbacks. */
import { KeywrightError } from "../../protocol/errors";
import { within } from "../../protocol/within";
import { RpcFailure, type BlockTag, type RpcEndpoint } from "./rpc";

/** Reads a value from one endpoint at one block; `blockNumber` is the block of the answer. */
export type Ask<T extends AtBlock> = (endpoint: RpcEndpoint, block: BlockTag) => Promise<T>;
export interface AtBlock {
  readonly blockNumber: bigint;
}

export async function agreed<T extends AtBlock>(
  endpoints: readonly RpcEndpoint[],
  quorum: number,
  ask: Ask<T>,
): Promise<T> {
  return quorum === 1 ? firstAnswer(endpoints, ask) : agreedByMany(endpoints, quorum, ask);
}

/** Tries the endpoints in order; the next only when one fails. */
async function firstAnswer<T extends AtBlock>(endpoints: readonly RpcEndpoint[], ask: Ask<T>): Promise<T> {
  const failures: unknown[] = [];
  for (const endpoint of endpoints) {
    try {
      return await ask(endpoint, "latest");
    } catch (error) {
      failures.push(error);
    }
  }
  throw unavailable("No RPC endpoint answered.", failures);
}

/** Asks all endpoints at once, first for their newest block. */
async function agreedByMany<T extends AtBlock>(
  endpoints: readonly RpcEndpoint[],
  quorum: number,
  ask: Ask<T>,
): Promise<T> {
  const heads: Answer<T>[] = [];
  const asked = endpoints.map(async (endpoint) => {
    const value = await ask(endpoint, "latest");
    heads.push({ endpoint, value });
    return value;
  });
  return (await agreementOf(asked, quorum)) ?? agreedAtCommonBlock(endpoints.length, heads, quorum, ask);
}

interface Answer<T> {
  readonly endpoint: RpcEndpoint;
  readonly value: T;
}

/** How long one block's answers are waited for before an older one is asked for. */
const OLDER_AFTER_MS = 150;

/**
 * Heads may differ by a block: endpoints that are ahead are asked again at the newest block that `quorum` of them claim
 * to have. One that lies about its head chooses that block, but not the older ones, where the others may agree: those
 * are asked for once there is no agreement, or none soon.
 */
async function agreedAtCommonBlock<T extends AtBlock>(
  endpoints: number,
  heads: readonly Answer<T>[],
  quorum: number,
  ask: Ask<T>,
): Promise<T> {
  const blocks = commonBlocks(heads, quorum);
  if (blocks.length === 0)
    throw unavailable(`${heads.length} of ${endpoints} RPC endpoints answered; ${quorum} must agree.`);
  const agreements: Promise<T | undefined>[] = [];
  for (const block of blocks) {
    const agreement = agreementOf(answersAt(block, heads, ask), quorum);
    const soon = await within(OLDER_AFTER_MS, agreement, () => undefined);
    if (soon !== undefined) return soon;
    agreements.push(agreement);
  }
  for (const agreement of agreements) {
    const value = await agreement;
    if (value !== undefined) return value;
  }
  throw unavailable(`The RPC endpoints do not agree at block ${blocks.join(" or ")}; ${quorum} must.`);
}

/** The heads that at least `quorum` endpoints claim to have reached, newest first. */
function commonBlocks(heads: readonly Answer<AtBlock>[], quorum: number): bigint[] {
  const blocks = heads.map(({ value }) => value.blockNumber).sort((a, b) => (a > b ? -1 : 1));
  return [...new Set(blocks.slice(quorum - 1))];
}

function answersAt<T extends AtBlock>(block: bigint, heads: readonly Answer<T>[], ask: Ask<T>): Promise<T>[] {
  const reached = heads.filter(({ value }) => value.blockNumber >= block);
  return reached.map(async ({ endpoint, value: head }) => {
    const value = head.blockNumber === block ? head : await ask(endpoint, block);
    if (value.blockNumber === block) return value;
    throw new RpcFailure("the endpoint answered for another block");
  });
}

/** As soon as enough answers are the same, without waiting for silent endpoints; undefined when that never happens. */
function agreementOf<T extends AtBlock>(asked: readonly Promise<T>[], quorum: number): Promise<T | undefined> {
  const votes = new Map<string, number>();
  return new Promise((resolve) => {
    const counted = asked.map(async (each) => {
      const value = await each;
      const text = canonical(value);
      const count = (votes.get(text) ?? 0) + 1;
      votes.set(text, count);
      if (count >= quorum) resolve(value);
    });
    void Promise.allSettled(counted).then(() => resolve(undefined));
  });
}

function canonical(value: object): string {
  return JSON.stringify(value, (_key, member: unknown) => (typeof member === "bigint" ? `${member}n` : member));
}

export function unavailable(detail: string, causes: readonly unknown[] = []): KeywrightError {
  const cause = causes.map((error) => (error instanceof Error ? error.message : "unknown failure")).join("; ");
  return new KeywrightError("chain_unavailable", detail, {}, { cause: cause || undefined, retryAfterSeconds: 2 });
}
