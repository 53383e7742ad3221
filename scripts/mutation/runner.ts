/** Runs the contract's tests one by one in this process, on a contract with many mutants, one of them active. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import hre from "hardhat";
import { clearSnapshots } from "@nomicfoundation/hardhat-network-helpers/dist/src/loadFixture";
import Mocha from "mocha";
import type { Artifact as HardhatArtifact } from "hardhat/types";
import { must } from "../gas/measure";
import type { Mutant } from "./mutants";
import { SWITCH, type Artifacts } from "./schemata";

const TESTS = join(__dirname, "../../test/contracts");
/** Tests of the allow-list, documents and compiler output do not cover the account contract. */
const UNRELATED = /applicationAllowlist|eventsDoc|trees|code-behind|safe\.test/;
const TIMEOUT_MS = 240_000;
const BLOCK_GAS = 100_000_000;

export interface OneTest {
  readonly title: string;
  readonly file: string;
  readonly run: () => Promise<void>;
}

/** Mocha finds the tests; they run here. */
class Collected extends Mocha {
  suiteOf(files: readonly string[]): Mocha.Suite {
    for (const file of files) this.addFile(file);
    this.loadFiles();
    return this.suite;
  }
}

export function loadTests(): OneTest[] {
  const files = readdirSync(TESTS, { recursive: true, encoding: "utf8" }).filter(
    (file) => file.endsWith(".test.ts") && !UNRELATED.test(file),
  );
  const suite = new Collected().suiteOf(files.map((file) => join(TESTS, file)));
  const found: OneTest[] = [];
  const collect = (suite: Mocha.Suite): void => {
    for (const test of suite.tests) {
      const context = { timeout: () => context };
      found.push({
        title: test.fullTitle(),
        file: test.file ?? "",
        run: async () => void (await (must(test.fn) as unknown as () => Promise<void>).call(context)),
      });
    }
    suite.suites.forEach(collect);
  };
  collect(suite);
  return found;
}

export class Runner {
  #acting = 0;
  /** Duration of each test without a mutant; infinite if it failed. */
  readonly #took = new Map<OneTest, number>();
  /** The tests that detected mutants in a place, newest first. */
  readonly #killers = new Map<string, OneTest[]>();
  readonly #tests: OneTest[];

  private constructor(tests: OneTest[]) {
    this.#tests = tests;
  }

  /** Deploys nothing: the tests deploy, and get this code. */
  static async start(artifacts: Artifacts, tests: readonly OneTest[]): Promise<Runner> {
    allowLargeCode();
    useCode(artifacts);
    await fresh();
    const runner = new Runner([...tests]);
    runner.#switchOnRevert();
    return runner;
  }

  /** The title of the first test that fails because of the mutant. */
  async killerOf(mutant: Mutant): Promise<string | undefined> {
    for (const test of this.#ordered(mutant)) {
      if (!(await this.#isSound(test))) continue;
      if (await this.#passesWith(mutant.id, test)) continue;
      if (!(await this.#passesWith(0, test))) {
        // An earlier failure left the chain in an unknown state.
        await fresh();
        if (!(await this.#passesWith(0, test)) || (await this.#passesWith(mutant.id, test))) continue;
      }
      this.#killers.set(mutant.place, [
        test,
        ...(this.#killers.get(mutant.place) ?? []).filter((known) => known !== test),
      ]);
      return test.title;
    }
    await this.#act(0);
    return undefined;
  }

  /**
   * Whether the test passes without a mutant. Run once, which also creates its fixtures. Gas of unoptimized code makes
   * some fail.
   */
  async #isSound(test: OneTest): Promise<boolean> {
    const known = this.#took.get(test);
    if (known !== undefined) return known !== Infinity;
    let from = Date.now();
    let holds = await this.#passesWith(0, test);
    if (!holds) {
      await fresh();
      from = Date.now();
      holds = await this.#passesWith(0, test);
    }
    this.#took.set(test, holds ? Date.now() - from : Infinity);
    return holds;
  }

  async #passesWith(id: number, test: OneTest): Promise<boolean> {
    await this.#act(id);
    return passes(test);
  }

  /** The tests known to fail on this code without a mutant. */
  get unsound(): string[] {
    return this.#tests.filter((test) => this.#took.get(test) === Infinity).map(({ title }) => title);
  }

  /** First the tests that detected a mutant in the same place, then those of the function, then the quick ones. */
  #ordered(mutant: Mutant): OneTest[] {
    const known = this.#killers.get(mutant.place) ?? [];
    const [, name = mutant.place] = mutant.place.split(".");
    const rank = (test: OneTest): number => {
      const at = known.indexOf(test);
      if (at !== -1) return at - known.length;
      return (this.#took.get(test) ?? guessed(test)) / (test.file.includes(`/${name}.`) ? 1000 : 1);
    };
    return this.#tests
      .map((test) => ({ test, at: rank(test) }))
      .sort((a, b) => a.at - b.at)
      .map(({ test }) => test);
  }

  async #act(id: number): Promise<void> {
    this.#acting = id;
    await setSwitch(id);
  }

  /** A fixture restores the chain to a state in which another mutant was active, or none. */
  #switchOnRevert(): void {
    const { request, send } = theProvider();
    const after = async <T>(method: string, answer: Promise<T>): Promise<T> => {
      const value = await answer;
      if (method === "evm_revert") await setSwitch(this.#acting);
      return value;
    };
    hre.network.provider.request = (args) => after(args.method, request(args));
    hre.network.provider.send = (method, params) => after(method, send(method, params) as Promise<unknown>);
  }
}

/** Assumed milliseconds of tests that have not run yet. */
const guessed = ({ file }: OneTest): number => (GUESSES.find(([part]) => file.includes(part)) ?? [undefined, 300])[1];
const GUESSES: [part: string, ms: number][] = [
  ["functions/", 100],
  ["views", 100],
  ["boundaries", 3_000],
  ["matrix", 2_000],
  ["f11-", 5_000],
  ["histories", 30_000],
];

async function passes(test: OneTest): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => (timer = setTimeout(() => reject(new Error("too late")), TIMEOUT_MS)));
  try {
    await Promise.race([test.run(), late]);
    return true;
  } catch {
    return false;
  } finally {
    clearTimeout(timer);
  }
}

/** An empty chain, on which tests create their fixtures again. */
async function fresh(): Promise<void> {
  await theProvider().send("hardhat_reset", []);
  await clearSnapshots();
}

const setSwitch = (id: number): Promise<unknown> =>
  theProvider().request({ method: "hardhat_setCode", params: [SWITCH, `0x${"00".repeat(id)}`] });

type Provider = Pick<typeof hre.network.provider, "request" | "send">;
let original: Provider | undefined;
function theProvider(): Provider {
  const { provider } = hre.network;
  return (original ??= { request: provider.request.bind(provider), send: provider.send.bind(provider) });
}

function allowLargeCode(): void {
  Object.assign(hre.config.networks.hardhat, {
    allowUnlimitedContractSize: true,
    blockGasLimit: BLOCK_GAS,
    gas: BLOCK_GAS,
  });
}

/** Replaces the code in the contracts' artifacts. */
let readArtifact: ((name: string) => Promise<HardhatArtifact>) | undefined;
function useCode(artifacts: Artifacts): void {
  const read = (readArtifact ??= hre.artifacts.readArtifact.bind(hre.artifacts));
  hre.artifacts.readArtifact = (async (name: string) => {
    const found = await read(name);
    return { ...found, ...artifacts[name as keyof Artifacts] };
  }) as typeof hre.artifacts.readArtifact;
}
