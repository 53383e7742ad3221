/** Writes per second: the bare node, then the relayer on the same node with as many payers. */
import { setTimeout as sleep } from "node:timers/promises";
import { Interface, JsonRpcProvider, keccak256, randomBytes, toBeHex, Transaction, Wallet } from "ethers";
import { Pool } from "undici";
import { AccountManager__factory } from "../../../typechain-types";
import { startPostgres, type TestPostgres } from "../../dev/postgres";
import { DEVELOPMENT_CHAIN_ID, DEVELOPMENT_DEPLOYER_KEY } from "../../dev/chain";
import type { Stack } from "../../dev/stack";
import { gasPerWrite, type GasPerWrite } from "./gas";
import { BenchClient, benchStack, rpc, type BenchAccount } from "../client";
import { median, rounded } from "../statistics";

export interface ThroughputRow {
  readonly chain: string;
  readonly payers: number;
  readonly accounts: number;
  readonly bare: number;
  readonly relayer: number;
  readonly ratio: number;
  readonly medianMs: number;
  /** Median of writes without concurrent load. */
  readonly aloneMs: number;
  readonly gas: GasPerWrite;
}

const ACCOUNTS = 64;
/** The warm-up takes about as many writes on both, so that the running services are measured and not their start. */
const CHAINS = [
  { name: "mines at once", args: [] as string[], accounts: ACCOUNTS, warmUpSeconds: 3, seconds: 8, bareWrites: 1_200 },
  {
    name: "a block each second",
    args: ["--block-time", "1"],
    accounts: ACCOUNTS,
    warmUpSeconds: 20,
    seconds: 12,
    bareWrites: 12 * ACCOUNTS,
  },
];
const BARE_CONNECTIONS = 32;
const CONTRACT = new Interface(AccountManager__factory.abi);

export async function throughputOnPostgres(
  payerCounts: readonly number[],
  say: (line: string) => void,
): Promise<ThroughputRow[]> {
  const postgres = await startPostgres();
  try {
    return await throughput(payerCounts, say, postgres);
  } finally {
    await postgres.stop();
  }
}

/** Each row uses a new chain and a new store: the embedded one, unless a PostgreSQL is given. */
export async function throughput(
  payerCounts: readonly number[],
  say: (line: string) => void,
  postgres?: TestPostgres,
): Promise<ThroughputRow[]> {
  const rows: ThroughputRow[] = [];
  for (const chain of CHAINS) {
    for (const payers of payerCounts) {
      const env: Record<string, string> =
        postgres === undefined ? {} : { DATABASE_URL: await postgres.database(`bench_${rows.length}`) };
      const stack = await benchStack({ payerCount: payers, chainArgs: chain.args, env });
      try {
        const bare = await bareRate(stack, payers, chain.bareWrites);
        const through = await relayerRate(stack, chain);
        const row = {
          chain: chain.name,
          payers,
          accounts: chain.accounts,
          bare: rounded(bare, 1),
          ...through,
          ratio: rounded(through.relayer / bare, 2),
        };
        say(`${row.chain}, ${payers} payers: bare ${row.bare}/s, relayer ${row.relayer}/s, ratio ${row.ratio}`);
        rows.push(row);
      } finally {
        await stack.stop();
      }
    }
  }
  return rows;
}

/**
 * The node's rate for pre-signed transactions of the bench's own payers and accounts, with as many in flight as there
 * are writing accounts; measured from the first send to the last one mined.
 */
async function bareRate(stack: Stack, payerCount: number, writes: number): Promise<number> {
  const provider = new JsonRpcProvider(stack.rpcUrl, undefined, {
    staticNetwork: true,
    cacheTimeout: -1,
    pollingInterval: 50,
  });
  const node = new Pool(stack.rpcUrl, { connections: BARE_CONNECTIONS });
  try {
    const payers = Array.from({ length: payerCount }, () => new Wallet(keccak256(randomBytes(32))));
    const accounts = await prepare(provider, stack.contractAddress, payers);
    const perPayer = Math.ceil(writes / payerCount);
    const raws = payers.map((payer) =>
      Array.from({ length: perPayer }, (_, nonce) => signed(payer, stack.contractAddress, accounts, nonce)),
    );
    const started = process.hrtime.bigint();
    await Promise.all(
      payers.map((payer, index) => sendInTurn(provider, node, payer.address, raws[index] ?? [], ACCOUNTS / payerCount)),
    );
    return (perPayer * payerCount) / (Number(process.hrtime.bigint() - started) / 1e9);
  } finally {
    provider.destroy();
    await node.close();
  }
}

/** Simulates accounts that each send the next write when the last is mined: at most one in flight per account. */
async function sendInTurn(
  provider: JsonRpcProvider,
  node: Pool,
  address: string,
  raws: readonly string[],
  atOnce: number,
): Promise<void> {
  let sent = 0;
  for (;;) {
    const mined = await provider.getTransactionCount(address, "latest");
    if (mined >= raws.length) return;
    const due = raws.slice(sent, Math.min(raws.length, mined + Math.max(1, Math.floor(atOnce))));
    sent += due.length;
    await Promise.all(due.map((raw) => rpc(node, "eth_sendRawTransaction", [raw])));
    if (due.length === 0) await sleep(5);
  }
}

async function prepare(
  provider: JsonRpcProvider,
  address: string,
  payers: readonly Wallet[],
): Promise<readonly string[]> {
  const admin = new Wallet(DEVELOPMENT_DEPLOYER_KEY, provider);
  const contract = AccountManager__factory.connect(address, admin);
  for (const payer of payers) {
    await provider.send("anvil_setBalance", [payer.address, toBeHex(10n ** 21n)]);
    await (await contract.addApiPayer(payer.address)).wait();
  }
  await (await contract.addApiPayer(admin.address)).wait();
  const accounts = Array.from({ length: 64 }, () => keccak256(randomBytes(32)));
  const calls = accounts.map((id) => CONTRACT.encodeFunctionData("newAccount", [id, true, "bench", "", admin.address]));
  await (await contract.multicall(calls)).wait();
  return accounts;
}

function signed(payer: Wallet, to: string, accounts: readonly string[], nonce: number): string {
  const data = CONTRACT.encodeFunctionData("addGroup", [accounts[nonce % accounts.length], "group", "", [], []]);
  const transaction = Transaction.from({
    type: 2,
    chainId: DEVELOPMENT_CHAIN_ID,
    to,
    data,
    nonce,
    gasLimit: 250_000,
    maxFeePerGas: 10n ** 11n,
    maxPriorityFeePerGas: 1n,
  });
  transaction.signature = payer.signingKey.sign(transaction.unsignedHash);
  return transaction.serialized;
}

type Through = Pick<ThroughputRow, "relayer" | "medianMs" | "aloneMs" | "gas">;

async function relayerRate(
  stack: Stack,
  { accounts: accountCount, warmUpSeconds, seconds }: (typeof CHAINS)[number],
): Promise<Through> {
  const client = new BenchClient(stack.baseUrl);
  try {
    const accounts = await Promise.all(Array.from({ length: accountCount }, () => client.account()));
    await writeFor(client, accounts, warmUpSeconds * 1_000);
    const alone = await writesAlone(client, accounts[0] as BenchAccount);
    const times = await writeFor(client, accounts, seconds * 1_000);
    return {
      relayer: rounded(times.length / seconds, 1),
      medianMs: rounded(median(times), 1),
      aloneMs: rounded(median(alone), 1),
      gas: await gasPerWrite(stack),
    };
  } finally {
    await client.close();
  }
}

const WRITES_ALONE = 9;

async function writesAlone(client: BenchClient, { key }: BenchAccount): Promise<readonly number[]> {
  const times: number[] = [];
  for (let n = 0; n < WRITES_ALONE; n++) {
    const started = Date.now();
    await client.post("add_group", { group_name: "group", group_description: "" }, key);
    times.push(Date.now() - started);
    await sleep(50);
  }
  return times;
}

/** Each account writes sequentially. Returns the times of writes answered within `ms`. */
async function writeFor(
  client: BenchClient,
  accounts: readonly BenchAccount[],
  ms: number,
): Promise<readonly number[]> {
  const until = Date.now() + ms;
  const times: number[] = [];
  const write = async ({ key }: BenchAccount): Promise<void> => {
    while (Date.now() < until) {
      const started = Date.now();
      const { status, answer } = await client.post("add_group", { group_name: "group", group_description: "" }, key);
      if (status !== 200) throw new Error(`add_group answered ${status}: ${JSON.stringify(answer)}`);
      if (Date.now() <= until) times.push(Date.now() - started);
    }
  };
  await Promise.all(accounts.map(write));
  return times;
}
