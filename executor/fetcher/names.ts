/**
 * Resolves names that guests choose. Not by the system's resolver: names that never answer block its few threads for
 * seconds and delay all other lookups. Here each lookup is a separate query with a time-out, can be cancelled, and
 * counts for its run.
 */
import { Resolver } from "node:dns/promises";
import type { LookupAddress } from "node:dns";
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { LRUCache } from "lru-cache";
import { FetchFailed } from "./types";

export interface NamesOptions {
  /** Name servers as `address` or `address:port`; default the system's. */
  readonly servers?: readonly string[] | undefined;
  readonly timeoutMs?: number;
  readonly hostsFile?: string;
}

export type Lookup = (host: string, signal?: AbortSignal) => Promise<LookupAddress[]>;

const TIMEOUT_MS = 2_000;
/** How long to wait for the addresses of one family after those of the other arrived. */
const OTHER_FAMILY_MS = 100;
const HOSTS_FILE = "/etc/hosts";
/** What c-ares says when no name server has answered. */
const NO_ANSWER: ReadonlySet<string | undefined> = new Set(["ETIMEOUT", "ECONNREFUSED", "ECANCELLED"]);
/** Of each family: a name may have thousands, and all are kept for the run. */
const ADDRESSES_KEPT = 8;
/** Runs whose names are cached; more than can run at once. */
const RUNS_KEPT = 4_096;

export class Names {
  readonly #options: NamesOptions;
  readonly #runs = new LRUCache<number, RunNames>({ max: RUNS_KEPT });

  constructor(options: NamesOptions = {}) {
    this.#options = options;
  }

  /** The names of one run, which may make at most `most` lookups. */
  ofRun(run: number, most: number): RunNames {
    const known = this.#runs.get(run) ?? new RunNames((host, signal) => this.lookup(host, signal), most);
    this.#runs.set(run, known);
    return known;
  }

  /** @throws FetchFailed `failed` when there is no address, or not in time. */
  async lookup(host: string, signal?: AbortSignal): Promise<LookupAddress[]> {
    const listed = fromHostsFile(host, this.#options.hostsFile ?? HOSTS_FILE);
    if (listed.length > 0) return listed;
    const resolver = this.#resolver();
    const cancel = (): void => resolver.cancel();
    const timer = setTimeout(cancel, this.#timeoutMs);
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      return await bothFamilies(host, resolver);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", cancel);
    }
  }

  /**
   * The same for the service itself, which has to know whose failure it is.
   * @throws FetchFailed `unavailable` when the name servers answer nothing, not even a question about the root.
   */
  async lookupOfService(host: string, signal?: AbortSignal): Promise<LookupAddress[]> {
    return this.lookup(host, signal).catch(async (error: unknown) => {
      if (signal?.aborted === true || (await this.#isAnswered())) throw error;
      throw new FetchFailed("unavailable", "the name servers do not answer");
    });
  }

  /** Any answer is one, also a refusal. */
  #isAnswered(): Promise<boolean> {
    return this.#resolver()
      .resolveNs(".")
      .then(
        () => true,
        ({ code }: NodeJS.ErrnoException) => !NO_ANSWER.has(code),
      );
  }

  get #timeoutMs(): number {
    return this.#options.timeoutMs ?? TIMEOUT_MS;
  }

  #resolver(): Resolver {
    const resolver = new Resolver({ timeout: this.#timeoutMs, tries: 1 });
    if (this.#options.servers !== undefined) resolver.setServers(this.#options.servers);
    return resolver;
  }
}

/**
 * The lookups of one run. Each name is resolved once, so that it cannot have one address when checked and another
 * later.
 */
export class RunNames {
  readonly #known = new Map<string, Promise<LookupAddress[]>>();
  #made = 0;
  readonly #lookup: Lookup;
  readonly #most: number;

  constructor(lookup: Lookup, most: number) {
    this.#lookup = lookup;
    this.#most = most;
  }

  /** @throws FetchFailed */
  async addressesOf(host: string, signal?: AbortSignal): Promise<LookupAddress[]> {
    const known = this.#known.get(host);
    if (known !== undefined) return known;
    if (++this.#made > this.#most)
      throw new FetchFailed("limit_exceeded", `the action had more than ${this.#most} names looked up`);
    const asked = this.#lookup(host, signal);
    this.#known.set(host, asked);
    // Failures are not cached: the next attempt may succeed.
    asked.catch(() => this.#known.delete(host));
    return asked;
  }
}

async function bothFamilies(host: string, resolver: Resolver): Promise<LookupAddress[]> {
  const found: LookupAddress[] = [];
  const questions = ([4, 6] as const).map(async (family) => {
    const addresses = await (family === 4 ? resolver.resolve4(host) : resolver.resolve6(host));
    found.push(...addresses.slice(0, ADDRESSES_KEPT).map((address) => ({ address, family })));
    if (addresses.length > 0) setTimeout(() => resolver.cancel(), OTHER_FAMILY_MS).unref();
  });
  await Promise.allSettled(questions);
  if (found.length === 0) throw new FetchFailed("failed", `${host}: the name cannot be resolved`);
  return found.sort((a, b) => a.family - b.family);
}

/** Names of this machine and its container network, which no name server knows. */
function fromHostsFile(host: string, file: string): LookupAddress[] {
  const wanted = host.toLowerCase();
  const found: LookupAddress[] = [];
  for (const line of linesOf(file)) {
    const [address = "", ...names] = (line.split("#", 1)[0] ?? "").trim().toLowerCase().split(/\s+/);
    if (names.includes(wanted) && isIP(address) !== 0) found.push({ address, family: isIP(address) });
  }
  return found;
}

function linesOf(file: string): string[] {
  try {
    return readFileSync(file, "utf8").split("\n");
  } catch {
    return [];
  }
}
