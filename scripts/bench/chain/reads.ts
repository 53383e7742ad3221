/** A list route against the bare call of the same view. */
import { AccountManager__factory } from "../../../typechain-types";
import { Pool } from "undici";
import { BenchClient, benchStack, rpc } from "../client";
import { median, rounded } from "../statistics";

export interface ReadResult {
  readonly items: number;
  readonly samples: number;
  readonly callMs: number;
  readonly routeMs: number;
  readonly ratio: number;
}

const ITEMS = 50;
const SAMPLES = 400;
/** Uncounted warm-up requests: measure the running service, not its start. */
const WARM_UP = 1_000;

export async function reads(say: (line: string) => void): Promise<ReadResult> {
  const stack = await benchStack({});
  const client = new BenchClient(stack.baseUrl);
  const node = new Pool(stack.rpcUrl, { connections: 1 });
  try {
    const { id, key } = await client.account();
    for (let made = 0; made < ITEMS; made++)
      await client.post("add_group", { group_name: `group ${made}`, group_description: "a description" }, key);
    const data = AccountManager__factory.createInterface().encodeFunctionData("listGroups", [id, 0, ITEMS]);
    const call = [{ to: stack.contractAddress, data }, "latest"];
    const bare = (): Promise<void> => rpc(node, "eth_call", call);
    const route = async (): Promise<unknown> => client.get(`list_groups?page_size=${ITEMS}`, key);
    const [callMs, routeMs] = await alternately(bare, route);
    const result = {
      items: ITEMS,
      samples: SAMPLES,
      callMs: rounded(callMs, 2),
      routeMs: rounded(routeMs, 2),
      ratio: rounded(routeMs / callMs, 2),
    };
    say(`list_groups ${result.routeMs} ms, eth_call ${result.callMs} ms`);
    return result;
  } finally {
    await node.close();
    await client.close();
    await stack.stop();
  }
}

/** Alternates, so that other load on the machine affects both. */
async function alternately(first: () => Promise<unknown>, second: () => Promise<unknown>): Promise<[number, number]> {
  const times: [number[], number[]] = [[], []];
  for (let sample = -WARM_UP; sample < SAMPLES; sample++) {
    for (const [index, work] of [first, second].entries()) {
      const started = process.hrtime.bigint();
      await work();
      if (sample >= 0) times[index]?.push(Number(process.hrtime.bigint() - started) / 1e6);
    }
  }
  return [median(times[0]), median(times[1])];
}
