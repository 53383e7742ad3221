import { twoAccounts, type Stage } from "./stages";
import { staged, type Cast } from "./world";
import { expect } from "chai";

export interface Context extends Stage {
  /**
   * Makes a call that must have this result: the error's name, or "ok" with the events the model expects ("silent":
   * none).
   */
  ends: (who: keyof Cast, name: string, args: readonly unknown[], end: string) => Promise<void>;
}

export type Leaf = (context: Context) => Promise<void>;
export interface Tree {
  [branch: string]: Tree | Leaf;
}

/**
 * A function's tree: every condition it checks, and the result. Each leaf is a test on a fresh stage. Authorization is
 * tested in matrix.test.ts.
 */
export function describeFunction(name: string, tree: Tree): void {
  describe(name, () => grow(tree));
}

function grow(tree: Tree): void {
  for (const [title, node] of Object.entries(tree)) {
    if (typeof node === "function") it(title, async () => node(await context()));
    else describe(title, () => grow(node));
  }
}

async function context(): Promise<Context> {
  const stage = await staged(twoAccounts);
  const { world } = stage;
  const ends: Context["ends"] = async (who, name, args, end) => {
    const from = (await world.allLogs()).length;
    expect((await world.call(world.cast[who], name, args)) ?? "ok", name).to.equal(end === "silent" ? "ok" : end);
    const events = (await world.allLogs()).length - from;
    expect(events > 0, `${name}: ${events} events`).to.equal(end === "ok");
  };
  return { ...stage, ends };
}
