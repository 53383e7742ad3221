/** A whole stack for the abuse bench, on PostgreSQL and with the compose file's memory for actions; its accounts. */
import { createSocket } from "node:dgram";
import { startPostgres } from "../../dev/postgres";
import { startStack, type Stack } from "../../dev/stack";
import { Caller, type AbuseAccount } from "./callers";
import { startServers } from "./servers";

/** Of the compose file: the executor's container and the relayer's. */
export const MEMORY_LIMITS_MIB = { executor: 8_192, relayer: 1_024 } as const;
/** Half of the executor's container, as there. */
const SANDBOX_MIB = MEMORY_LIMITS_MIB.executor / 2;
/**
 * New accounts a day, half of them at once: enough for this bench if a repeated request counts once, and too few if
 * each repetition does.
 */
const MINTS_PER_DAY = 2_000;
const CREDIT_CENTS = 1_000_000;
const SETTING_UP_AT_ONCE = 8;

export interface Bed {
  readonly stack: Stack;
  readonly honest: AbuseAccount;
  readonly attackers: readonly AbuseAccount[];
  /** Host and port of the servers that the honest account fetches from, and of those that the attackers do. */
  readonly servers: string;
  readonly attackersServers: string;
}

/** Everything that was started ends, also when something else fails to start. */
export async function withBed(attackers: number, work: (bed: Bed) => Promise<void>): Promise<void> {
  const ends: (() => unknown)[] = [];
  try {
    await work(await startBed(attackers, (end) => ends.unshift(end)));
  } finally {
    for (const end of ends) await end();
  }
}

async function startBed(attackers: number, atEnd: (end: () => unknown) => void): Promise<Bed> {
  const nameServer = createSocket("udp4");
  await new Promise<void>((resolve) => nameServer.bind(0, "127.0.0.1", resolve));
  atEnd(() => nameServer.close());
  const servers = await startServers();
  atEnd(servers.close);
  const attackersServers = await startServers();
  atEnd(attackersServers.close);
  // As in the compose file, where the relayer's memory is without the store's.
  const postgres = await startPostgres();
  atEnd(postgres.stop);
  const stack = await startStack({
    env: {
      DATABASE_URL: postgres.url,
      SIGNUP_CREDIT_CENTS: String(CREDIT_CENTS),
      TRUSTED_PROXY_HOPS: "1",
      RATE_LIMIT_ADDRESS_PER_SECOND: "1000000",
      RATE_LIMIT_KEY_PER_SECOND: "1000000",
      RATE_LIMIT_HEAVY_PER_MINUTE: "1000000",
      RATE_LIMIT_MINTS_PER_MINUTE: "1000000",
      RATE_LIMIT_MINTS_PER_DAY: String(MINTS_PER_DAY),
      SANDBOX_MEMORY_MIB: String(SANDBOX_MIB),
      DNS_SERVERS: `127.0.0.1:${nameServer.address().port}`,
      FETCH_ALLOW_HOSTS: `${servers.at},${attackersServers.at}`,
    },
  });
  atEnd(stack.stop);
  const caller = new Caller(stack.baseUrl, SETTING_UP_AT_ONCE);
  const accounts: AbuseAccount[] = [];
  while (accounts.length <= attackers) {
    const next = Array.from({ length: SETTING_UP_AT_ONCE }, (_, i) => `10.${accounts.length + i}.0.1`);
    accounts.push(...(await Promise.all(next.map((address) => caller.signUp(address)))));
  }
  await caller.close();
  const [honest, ...others] = accounts as [AbuseAccount, ...AbuseAccount[]];
  return {
    stack,
    honest,
    attackers: others.slice(0, attackers),
    servers: servers.at,
    attackersServers: attackersServers.at,
  };
}
