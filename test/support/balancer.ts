/** Debian's HAProxy in front of several relayers, and its log: which of them answered which request. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../scripts/dev/ports";
import { startProcess, waitUntil } from "../../scripts/dev/processes";

const PROGRAM = "/usr/sbin/haproxy";
/** The request header that identifies a request in the log. */
export const TAG_HEADER = "x-tag";

export interface Balancer {
  readonly baseUrl: string;
  /** The machine that last handled a tagged request; undefined until the request has ended. */
  machineOf(tag: string): string | undefined;
  stop(): Promise<void>;
}

export async function startBalancer(
  machines: readonly { readonly name: string; readonly port: number }[],
): Promise<Balancer> {
  if (!existsSync(PROGRAM)) throw new Error("HAProxy is missing: apt-get install haproxy");
  const folder = mkdtempSync(join(tmpdir(), "balancer-"));
  const port = await freePort();
  const file = join(folder, "haproxy.cfg");
  writeFileSync(file, configuration(port, machines));
  const answered = new Map<string, string>();
  const onLine = (line: string): void => {
    const [, tag, machine] = /^request (\S+) (\S+)/.exec(line) ?? [];
    if (tag !== undefined && machine !== undefined) answered.set(tag, machine);
  };
  const haproxy = startProcess({
    name: "haproxy",
    command: PROGRAM,
    args: ["-db", "-f", file],
    env: { PATH: process.env.PATH },
    onLine,
  });
  const baseUrl = `http://127.0.0.1:${port}`;
  await waitUntil("haproxy", async () => (await fetch(`${baseUrl}/health`)).ok, {
    timeoutMs: 20_000,
    died: haproxy.died,
  });
  return {
    baseUrl,
    machineOf: (tag) => answered.get(tag),
    stop: async () => {
      await haproxy.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** As in docs/operations.md, except for the log and the short intervals. */
const configuration = (port: number, machines: readonly { readonly name: string; readonly port: number }[]): string => `
global
  log stdout format raw local0
defaults
  mode http
  log global
  timeout connect 5s
  timeout check 10s
  timeout client 120s
  timeout server 120s
  retries 3
  option redispatch 1
  retry-on conn-failure
frontend api
  bind 127.0.0.1:${port}
  capture request header ${TAG_HEADER} len 64
  log-format "request %[capture.req.hdr(0)] %s %ST %ts"
  default_backend machines
backend machines
  balance roundrobin
  option httpchk GET /ready
  default-server check inter 500ms fall 1 rise 1
${machines.map(({ name, port: at }) => `  server ${name} 127.0.0.1:${at}`).join("\n")}
`;
