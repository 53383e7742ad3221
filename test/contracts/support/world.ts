import type { HardhatEthersSigner } from "@nomicfoundation/hardhat-ethers/signers";
import { loadFixture, time } from "@nomicfoundation/hardhat-network-helpers";
import { expect } from "chai";
import { ethers } from "hardhat";
import { LogDescription, type ErrorFragment, type EventFragment } from "ethers";
import type { AccountManager, ERC2771Forwarder } from "../../../typechain-types";
import { Broken, Model, isBatch, type Emitted, type Inner } from "./model";
import { expectSame } from "./same";
import type { State } from "./state";
import { must } from "../../support/must";

export const number = (text: string): bigint => BigInt(ethers.id(text));
export const cid = (i: number): bigint => number(`action ${i}`);
export const walletOf = (text: string): string => ethers.getAddress(ethers.dataSlice(ethers.id(text), 12));

/** A path as the executor creates it: kind, 15 random bytes, the low 16 bytes of the account id. */
export const pathFor = (id: bigint, label: string, kind = 1n): bigint =>
  (kind << 248n) | ((number(label) & ((1n << 120n) - 1n)) << 128n) | (id & ((1n << 128n) - 1n));

export interface Cast {
  admin: HardhatEthersSigner;
  payer: HardhatEthersSigner;
  otherPayer: HardhatEthersSigner;
  alice: HardhatEthersSigner;
  bob: HardhatEthersSigner;
  carol: HardhatEthersSigner;
  stranger: HardhatEthersSigner;
}

/**
 * The contract, its model, and every caller. A call is made on both and must have the same result, with the same
 * events.
 */
export class World {
  #atStart: State | undefined;
  /** By selector and by topic: to find one, ethers hashes the signatures of all before it, each time. */
  readonly #errors = new Map<string, ErrorFragment>();
  readonly #events = new Map<string, EventFragment>();

  private constructor(
    readonly manager: AccountManager,
    readonly forwarder: ERC2771Forwarder,
    readonly model: Model,
    readonly cast: Cast,
  ) {
    manager.interface.forEachError((error) => this.#errors.set(error.selector, error));
    manager.interface.forEachEvent((event) => this.#events.set(event.topicHash, event));
  }

  static async create(payerDelay = 0): Promise<World> {
    const [admin, payer, otherPayer, alice, bob, carol, stranger] = await ethers.getSigners();
    const forwarder = await ethers.deployContract("ERC2771Forwarder", ["Keywright Forwarder"]);
    const manager = await ethers.deployContract("AccountManager", [
      must(admin).address,
      payerDelay,
      forwarder,
      ethers.id("a root key"),
    ]);
    const places = { contract: await manager.getAddress(), forwarder: await forwarder.getAddress() };
    const model = new Model(must(admin).address, places, BigInt(payerDelay));
    const cast = { admin, payer, otherPayer, alice, bob, carol, stranger } as Cast;
    return new World(manager as unknown as AccountManager, forwarder as unknown as ERC2771Forwarder, model, cast);
  }

  /** Restores the model's state of the first call; `staged` restores the chain. */
  rewind(): void {
    this.#atStart ??= structuredClone(this.model.state);
    Object.assign(this.model.state, structuredClone(this.#atStart));
  }

  /** Returns the error of both, or undefined. */
  async call(
    sender: HardhatEthersSigner,
    name: string,
    args: readonly unknown[],
    secondsLater = 1,
  ): Promise<string | undefined> {
    const now = BigInt((await time.latest()) + secondsLater);
    await time.setNextBlockTimestamp(now);
    const expected = predicted(() => this.model.call(sender.address, name, args, now));
    const actual = await this.#send(sender, name, args);
    expectSame(actual, expected, `${name}(${show(args)}) by ${sender.address}`);
    return expected.error?.[0];
  }

  /** As `call`, for a call that must succeed. */
  async do(sender: HardhatEthersSigner, name: string, ...args: unknown[]): Promise<void> {
    expect(await this.call(sender, name, args), name).to.equal(undefined);
  }

  async #send(sender: HardhatEthersSigner, name: string, args: readonly unknown[]): Promise<End> {
    try {
      const data = this.encoded([name, args]);
      const response = await sender.sendTransaction({ to: this.manager, data, gasLimit: 20_000_000 });
      const logs = this.decode(must(await response.wait()));
      return { events: logs.map((log) => this.#emitted(log)) };
    } catch (error) {
      return { error: this.#errorIn(error) };
    }
  }

  /** The bytes of a call, including those of the calls in a batch. */
  encoded([name, args]: Inner): string {
    const values = isBatch(name) ? [(args[0] as Inner[]).map((inner) => this.encoded(inner))] : args;
    return this.manager.interface.encodeFunctionData(name as "multicall", values as [string[]]);
  }

  /** An event of the model: for a call that failed alone, with its error in place of its bytes. */
  #emitted({ name, args }: LogDescription): Emitted {
    const values = args.toArray(true);
    if (name !== "CallFailed") return [name, ...values];
    return [name, values[0], must(this.#parsedError(String(values[1])))];
  }

  decode({ logs }: { readonly logs: readonly Raw[] }): LogDescription[] {
    return logs.map(({ topics, data }) => {
      const topic = must(topics[0]);
      const event = must(this.#events.get(topic));
      return new LogDescription(event, topic, this.manager.interface.decodeEventLog(event, data, topics));
    });
  }

  errorName(error: unknown): string {
    return this.#errorIn(error)[0];
  }

  #errorIn(error: unknown): [name: string, ...args: unknown[]] {
    const data = /0x[0-9a-f]{8,}/.exec(revertData(error))?.[0];
    const parsed = data && this.#parsedError(data);
    if (!parsed) throw error as Error;
    return parsed;
  }

  #parsedError(data: string): [name: string, ...args: unknown[]] | undefined {
    const error = this.#errors.get(data.slice(0, 10));
    return error && [error.name, ...this.manager.interface.decodeErrorResult(error, data).toArray(true)];
  }

  /** How a call without a transaction ends: "ok" or the name of its error, which ethers' contract would look up too. */
  async endOfCall(caller: HardhatEthersSigner, data: string): Promise<string> {
    try {
      const call = { from: caller.address, to: await this.manager.getAddress(), data };
      await ethers.provider.send("eth_call", [call, "latest"]);
      return "ok";
    } catch (error) {
      return this.errorName(error);
    }
  }

  async allLogs(): Promise<LogDescription[]> {
    return this.decode({
      logs: await ethers.provider.getLogs({ address: await this.manager.getAddress(), fromBlock: 0 }),
    });
  }
}

/** A log of the chain. */
interface Raw {
  readonly topics: readonly string[];
  readonly data: string;
}

/** The typed error with its arguments, or the events. */
interface End {
  readonly error?: [name: string, ...args: unknown[]];
  readonly events?: Emitted[];
}

function predicted(run: () => Emitted[]): End {
  try {
    return { events: run() };
  } catch (error) {
    if (error instanceof Broken) return { error: [error.message, ...error.args] };
    throw error;
  }
}

/** The data of a revert: nodes put it into the error, or only into its text. */
function revertData(error: unknown): string {
  const { data, message } = error as { data?: unknown; message?: string };
  return typeof data === "string" ? data : (message ?? "");
}

export const show = (value: unknown): string =>
  JSON.stringify(value, (_, v: unknown) => (typeof v === "bigint" ? String(v) : v));

/** `loadFixture` for a stage with a world: restores both chain and model. */
export async function staged<T extends { world: World }>(fixture: () => Promise<T>): Promise<T> {
  const stage = await loadFixture(fixture);
  stage.world.rewind();
  return stage;
}

/** The slot of an account's record: the only mapping entry whose first word contains its owner's address. */
export async function accountSlot({ manager }: World, id: bigint): Promise<string> {
  const { adminWalletAddress } = await manager.getAccount(id);
  for (let position = 0; position < 20; position++) {
    const slot = ethers.keccak256(ethers.AbiCoder.defaultAbiCoder().encode(["uint256", "uint256"], [id, position]));
    const word = await ethers.provider.getStorage(manager, slot);
    if (word.toLowerCase().endsWith(adminWalletAddress.slice(2).toLowerCase())) return slot;
  }
  throw new Error("The account's record was not found.");
}
