/** The repository's compose file as an operator deploys it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse, stringify } from "yaml";

export const SOURCE = readFileSync(join(__dirname, "..", "..", "compose.yaml"), "utf8");

/** The digest of the image of a service. */
type DigestOf = (name: string) => string;
const noDigest: DigestOf = () => `sha256:${"0".repeat(64)}`;

/** With images named by digest, and its variables as they are. */
export const withImages = (text: string, digestOf = noDigest): string =>
  text.replace(/\$\{(\w+)_IMAGE:[^}]*\}/g, (_, variable: string) => {
    const name = variable.toLowerCase();
    return `registry.example/${name}@${digestOf(name)}`;
  });

/** Each variable's value in place of it: its default, or `set`. A default may refer to another variable. */
function substituted(text: string): string {
  const once = text.replace(
    /\$\{\w+(?::([-?])([^${}]*))?\}/g,
    (_, kind: string | undefined, otherwise: string | undefined) => (kind === "-" ? (otherwise ?? "") : "set"),
  );
  return once === text ? text : substituted(once);
}

interface Service {
  readonly [member: string]: unknown;
  readonly environment: Readonly<Record<string, unknown>>;
  readonly depends_on?: Readonly<Record<string, object>>;
  readonly healthcheck?: Readonly<Record<string, unknown>>;
  readonly volumes: readonly string[];
  readonly ports?: readonly string[];
  readonly mem_limit?: string;
  readonly stop_grace_period: string;
}

/** As `docker compose config` writes it: all variables replaced, long forms, members sorted by name. */
export const rendered = (digestOf = noDigest): string =>
  stringify(renderedFile(digestOf), { sortMapEntries: true, aliasDuplicateObjects: false });

function renderedFile(digestOf: DigestOf): object {
  const file = parse(substituted(withImages(SOURCE, digestOf)), { merge: true }) as {
    services: Record<string, Service>;
    volumes: Record<string, null>;
  };
  const mapped = <T, R>(all: Readonly<Record<string, T>>, change: (value: T, name: string) => R): Record<string, R> =>
    Object.fromEntries(Object.entries(all).map(([name, value]) => [name, change(value, name)]));
  return {
    ...file,
    name: "keywright",
    services: mapped(file.services, (service) => ({
      ...service,
      command: null,
      entrypoint: null,
      networks: { default: null },
      environment: mapped(service.environment, (value) => String(value ?? "")),
      stop_grace_period: goDuration(service.stop_grace_period),
      volumes: service.volumes.map(longVolume),
      ...(service.mem_limit === undefined ? {} : { mem_limit: bytesOf(service.mem_limit) }),
      ...(service.ports === undefined ? {} : { ports: service.ports.map(longPort) }),
      ...(service.healthcheck === undefined
        ? {}
        : {
            healthcheck: mapped(service.healthcheck, (value) =>
              typeof value === "string" ? goDuration(value) : value,
            ),
          }),
      ...(service.depends_on === undefined
        ? {}
        : { depends_on: mapped(service.depends_on, (settings) => ({ required: true, ...settings })) }),
    })),
    networks: { default: { name: "keywright_default" } },
    volumes: mapped(file.volumes, (_, name) => ({ name: `keywright_${name}` })),
  };
}

function longVolume(text: string): object {
  const [source = "", target, mode] = text.split(":");
  const kind = source.startsWith("/")
    ? { type: "bind", bind: { create_host_path: true } }
    : { type: "volume", volume: {} };
  return { ...kind, source, target, ...(mode === "ro" ? { read_only: true } : {}) };
}

function longPort(text: string): object {
  const [target, published, ...host] = text.split(":").reverse();
  const address = host.length === 0 ? {} : { host_ip: host.reverse().join(":") };
  return { mode: "ingress", ...address, target: Number(target), published, protocol: "tcp" };
}

/** `70s` → `1m10s`. */
function goDuration(text: string): string {
  const seconds = Number(/^(\d+)s$/.exec(text)?.[1]);
  return seconds < 60 ? text : `${Math.floor(seconds / 60)}m${seconds % 60}s`;
}

function bytesOf(text: string): string {
  return String(Number(text.slice(0, -1)) * (text.endsWith("g") ? 2 ** 30 : 2 ** 20));
}
