/** What the service itself fetches: modules, code by CID, key sets; only from configured endpoints. */
import { createHash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { base58btc } from "multiformats/bases/base58";
import { cidOfCode } from "../../protocol/cid";
import { KIB } from "../../protocol/limits";
import { exchange, type Rules } from "./exchange";
import type { Configuration } from "./messages";
import { countFields, type Fields } from "./protobuf";
import { FetchFailed } from "./types";

export type Endpoints = Readonly<Pick<Configuration, "moduleOrigin" | "gateways" | "kuboRpcUrl" | "jwksUrls">>;

interface Get {
  readonly headers?: Readonly<Record<string, string>>;
  readonly method?: "GET" | "POST";
  readonly signal?: AbortSignal | undefined;
}

/** What reading one file block by block has gathered so far. */
interface Walk {
  readonly parts: Buffer[];
  blocks: number;
  bytesLeft: number;
  blockBytesLeft: number;
  readonly signal: AbortSignal | undefined;
}

const TIMEOUT_MS = 15_000;
const MAX_JWKS_BYTES = 262_144;
/** Files of other tools may have blocks larger than a chunk; 2 MiB is the most that peers exchange. */
const MAX_BLOCK_BYTES = 2 * 2 ** 20;
const MAX_BLOCKS = 1_024;

export class Sources {
  readonly #endpoints: Endpoints;
  readonly #rules: Rules;

  constructor(endpoints: Endpoints, rules: Rules) {
    this.#endpoints = endpoints;
    this.#rules = rules;
  }

  async module(url: string, maxBytes: number, signal?: AbortSignal): Promise<Buffer> {
    const { moduleOrigin } = this.#endpoints;
    if (!moduleOrigin || !url.startsWith(moduleOrigin))
      throw new FetchFailed("refused", "the module is not below the configured origin");
    return this.#get(url, maxBytes, { signal });
  }

  async jwks(url: string): Promise<string> {
    if (!this.#endpoints.jwksUrls.includes(url))
      throw new FetchFailed("refused", "the key set is not of a configured identity provider");
    return (await this.#get(url, MAX_JWKS_BYTES, { headers: { accept: "application/json" } })).toString("utf8");
  }

  /**
   * The bytes of the first source that match the CID. A source with wrong bytes is skipped like one that does not
   * answer.
   * @throws FetchFailed `not_found` where no source has it, `too_large`; otherwise what kept a source from answering
   */
  async code(cid: string, maxBytes: number, signal?: AbortSignal): Promise<Buffer> {
    const { gateways, kuboRpcUrl } = this.#endpoints;
    const attempts = gateways.map((gateway) => () => this.#fromGateway(gateway, cid, maxBytes, signal));
    if (kuboRpcUrl)
      attempts.push(() =>
        this.#get(`${trimmed(kuboRpcUrl)}/api/v0/cat?arg=${cid}`, maxBytes, { method: "POST", signal }),
      );
    const problems: FetchFailed[] = [];
    for (const attempt of attempts) {
      if (signal?.aborted) throw new FetchFailed("timed_out", "the sources took too long");
      try {
        const bytes = await attempt();
        if ((await cidOfCode(bytes, setImmediate)) === cid) return bytes;
        problems.push(new FetchFailed("failed", "a source answered with other bytes than the CID names"));
      } catch (error) {
        if (!(error instanceof FetchFailed)) throw error;
        problems.push(error);
      }
    }
    // It is missing only where every source says so: one that is away may have it.
    const other =
      problems.find(({ code }) => code === "too_large") ?? problems.find(({ code }) => code !== "not_found");
    if (other) throw other;
    throw new FetchFailed(
      "not_found",
      attempts.length > 0 ? `no source has the code of ${cid}` : "no source for code by CID is configured",
    );
  }

  /** Fetches block by block, each verified by its hash. Also accepts a gateway that only returns whole files. */
  async #fromGateway(gateway: string, cid: string, maxBytes: number, signal: AbortSignal | undefined): Promise<Buffer> {
    const root = await this.#block(gateway, cid, maxBytes, signal);
    if (!isBlockOf(root, cid)) return root;
    const parts: Buffer[] = [];
    await this.#walk(gateway, root, { parts, blocks: 1, bytesLeft: maxBytes, blockBytesLeft: 2 * maxBytes, signal });
    const whole = Buffer.concat(parts);
    // Each block is what its CID names: another try changes nothing.
    if ((await cidOfCode(whole, setImmediate)) !== cid)
      throw new FetchFailed("not_found", "the CID names a file in other blocks than those of code");
    return whole;
  }

  #block(gateway: string, cid: string, maxBytes: number, signal: AbortSignal | undefined): Promise<Buffer> {
    const headers = { accept: "application/vnd.ipld.raw" };
    return this.#get(`${trimmed(gateway)}/ipfs/${cid}?format=raw`, maxBytes, { headers, signal });
  }

  async #walk(gateway: string, block: Buffer, state: Walk): Promise<void> {
    const { data, links } = await readNode(block);
    state.bytesLeft -= data.length;
    // Of the blocks themselves twice as much: what they have besides data is held as long as the file is read.
    state.blockBytesLeft -= block.length;
    if (state.bytesLeft < 0 || state.blockBytesLeft < 0)
      throw new FetchFailed("too_large", "the code exceeds the size limit");
    state.parts.push(data);
    for (const cid of links) {
      if (++state.blocks > MAX_BLOCKS) throw tooManyBlocks();
      const child = await this.#block(gateway, cid, MAX_BLOCK_BYTES, state.signal);
      if (!isBlockOf(child, cid)) throw new FetchFailed("failed", "a gateway answered with a block of another hash");
      await this.#walk(gateway, child, state);
    }
  }

  async #get(url: string, maxBytes: number, { headers = {}, method = "GET", signal }: Get = {}): Promise<Buffer> {
    const request = {
      url,
      method,
      headers: Object.entries(headers),
      redirect: "follow" as const,
      timeoutMs: TIMEOUT_MS,
      maxBytes,
    };
    const { response, body } = await exchange(request, Buffer.alloc(0), this.#rules, signal);
    if (isMissing(response.status, body)) throw new FetchFailed("not_found", `${new URL(url).host} does not have it`);
    if (response.status !== 200) throw new FetchFailed("failed", `${new URL(url).host} answered ${response.status}`);
    return body;
  }
}

/**
 * Gateways that find no provider answer 504, Kubo's RPC 500 with a sentence. No later try would end otherwise, unless
 * somebody publishes the code.
 */
const isMissing = (status: number, body: Buffer): boolean =>
  [404, 410, 504].includes(status) || (status === 500 && /not f(ind|ound)/i.test(body.toString("utf8", 0, KIB)));

/** The configured endpoints may be on this machine or a private network; the targets of their redirects may not. */
export function ownRules(endpoints: Endpoints, resolve?: Rules["resolve"]): Rules {
  const urls = [...endpoints.gateways, ...endpoints.jwksUrls, endpoints.moduleOrigin, endpoints.kuboRpcUrl].filter(
    (url) => url !== undefined,
  );
  const allowHosts = urls.map((text) => {
    const { hostname, port, protocol } = new URL(text);
    return `${hostname}:${port || (protocol === "https:" ? 443 : 80)}`;
  });
  return { allowHosts, ports: [80, 443], ...(resolve && { resolve }) };
}

const tooManyBlocks = (): FetchFailed => new FetchFailed("too_large", "the code has more blocks than code may have");

const trimmed = (url: string): string => url.replace(/\/+$/, "");

/** CIDv0 is the base58 of the sha2-256 multihash of the block. */
function isBlockOf(block: Buffer, cid: string): boolean {
  const multihash = Buffer.concat([Buffer.from([0x12, 0x20]), createHash("sha256").update(block).digest()]);
  return base58btc.encode(multihash).slice(1) === cid;
}

/** A node's data and links. */
const NODE: Fields = { 1: "bytes", 2: "bytes" };
/** What a file of code has: its type, bytes, their number, and how many are in each block below. */
const FILE: Fields = { 1: "number", 2: "bytes", 3: "number", 4: "number" };
/** A link or a size for each other block, and two more. */
const MAX_FIELDS = MAX_BLOCKS + 1;

/** @throws FetchFailed `too_large`; Error where it has other fields */
function withFewFields(message: Uint8Array, fields: Fields): Uint8Array {
  const counted = countFields(message, fields, MAX_FIELDS);
  if (counted === undefined) throw new Error("fields that code does not have");
  if (counted > MAX_FIELDS) throw tooManyBlocks();
  return message;
}

async function readNode(block: Buffer): Promise<{ data: Buffer; links: string[] }> {
  // These two are ES modules only: import(), not require.
  const [{ decode }, { UnixFS }] = await Promise.all([import("@ipld/dag-pb"), import("ipfs-unixfs")]);
  try {
    const node = decode(withFewFields(block, NODE));
    const file = UnixFS.unmarshal(withFewFields(node.Data ?? new Uint8Array(), FILE));
    if (file.isDirectory()) throw new Error("a directory");
    if (node.Links.some(({ Hash }) => Hash.version !== 0)) throw new Error("leaves that code does not have");
    return { data: Buffer.from(file.data ?? new Uint8Array()), links: node.Links.map((link) => link.Hash.toString()) };
  } catch (error) {
    if (error instanceof FetchFailed) throw error;
    throw new FetchFailed("not_found", "the CID names something that is not a file as code is");
  }
}
