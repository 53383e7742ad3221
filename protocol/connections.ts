/**
 * Connections of servers, shared fairly between the addresses they come from: each holds memory and a descriptor, also
 * one that never sends anything.
 */
import { once } from "node:events";
import type { Server, Socket } from "node:net";
import { clientGroup, clientNetwork } from "./clientGroup";
import { FairShare, inScope, type Scope } from "./fairShare";

/** For so long the connections of a newcomer wait for room; they are served meanwhile. */
const PATIENCE_MS = 250;
/** Of all connections, those that may wait. */
const WAITING_PART = 1 / 8;

export interface SharedConnections {
  /** How many may be open; an eighth more while they wait. */
  readonly total: number;
  /** Of the client, where the connection is another's. */
  readonly addressOf?: (socket: Socket) => string | undefined;
}

/** Beyond the total, connections of the addresses that have most are ended when others want one. */
export function shareConnections(
  servers: readonly Server[],
  { total, addressOf = ({ remoteAddress }) => remoteAddress }: SharedConnections,
): void {
  const share = new FairShare({
    total,
    mostWaiting: Math.ceil(total * WAITING_PART),
    crowdOf: networkIn,
    patienceMs: PATIENCE_MS,
  });
  const hold = async (scope: Scope): Promise<void> => {
    await scope.take(share);
    if (!scope.over.aborted) await once(scope.over, "abort");
  };
  for (const server of servers)
    server.on("connection", (socket: Socket) => {
      const closed = new AbortController();
      socket.once("close", () => closed.abort());
      inScope(nameOf(addressOf(socket) ?? ""), closed.signal, hold)
        .catch(() => undefined)
        .finally(() => socket.destroy());
    });
}

const nameOf = (address: string): string => `${clientNetwork(address)} ${clientGroup(address)}`;

const networkIn = (name: string): string => name.slice(0, name.indexOf(" "));
