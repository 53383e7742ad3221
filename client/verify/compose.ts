/**
 * The application configuration: which programs its machine runs. Each is fixed by an image's digest only if nothing
 * beside the image brings in or starts other code, so whatever this check does not know is refused.
 */
import { isMap, isNode, isScalar, parseDocument, visit, type Document, type Node } from "yaml";
import { jsonOf, Malformed } from "./types";

export const MAX_COMPOSE_CHARS = 1024 * 1024;
const PINNED = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,255}@sha256:[0-9a-f]{64}$/;

/** Members of app_compose that run nothing. Its scripts run on the machine itself. */
const APP_MEMBERS = new Set([
  ...["manifest_version", "name", "features", "runner", "docker_compose_file", "docker_config", "allowed_envs"],
  ...["kms_enabled", "local_key_provider_enabled", "key_provider", "key_provider_id", "no_instance_id", "secure_time"],
  ...["gateway_enabled", "tproxy_enabled", "port_policy", "public_logs", "public_sysinfo", "public_tcbinfo"],
  ...["storage_fs", "swap_size", "event_log_version"],
]);
/** Members of a compose file, except those that start with `x-`, which compose ignores. */
const FILE_MEMBERS = new Set(["name", "version", "services", "volumes", "networks"]);
/** Members of a service that neither bring in nor start another program than the image's own. */
const SERVICE_MEMBERS = new Set([
  ...["image", "environment", "healthcheck", "cap_drop", "cap_add", "security_opt", "read_only", "volumes", "tmpfs"],
  ...["networks", "ports", "depends_on", "restart", "logging", "mem_limit", "stop_grace_period", "profiles"],
]);
/** Also the name under which the others reach it, so it is no name of another host. */
const SERVICE_NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/;
/** Literal, since two texts with variables may come to the same name. */
const RESOURCE_NAME = /^(?!(?:host|none|bridge)$)[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/;

export type Members = Readonly<Record<string, unknown>>;

export interface ComposeFile {
  readonly services: ReadonlyMap<string, Members>;
  readonly volumes: ReadonlySet<string>;
}

export interface Application {
  readonly compose: ComposeFile;
  /** Variables whose values, which are not measured, the operator may give. */
  readonly allowedEnvs: readonly string[];
}

/** Throws Malformed naming the member that could run other code. */
export function applicationOf(appCompose: string): Application {
  if (appCompose.length > MAX_COMPOSE_CHARS)
    throw new Malformed(`app_compose is longer than ${MAX_COMPOSE_CHARS} characters`);
  const app = membersOf(jsonOf(appCompose, "app_compose"), "app_compose");
  const unknown = Object.keys(app).find((name) => !APP_MEMBERS.has(name) && !isEmpty(app[name]));
  if (unknown !== undefined)
    throw new Malformed(`app_compose has "${unknown}": it could run code that no image's digest fixes`);
  const { runner, docker_compose_file: file, allowed_envs: envs } = app;
  if (runner !== undefined && runner !== "docker-compose")
    throw new Malformed("app_compose is not run by docker-compose, so no image fixes its code");
  if (typeof file !== "string") throw new Malformed("app_compose has no docker_compose_file");
  return { compose: composeFileOf(file), allowedEnvs: stringsOf(envs, "allowed_envs of app_compose") };
}

/** The images, by service. Throws Malformed naming the service whose image is not pinned. */
export function pinnedImages(appCompose: string): Map<string, string> {
  return imagesOf(applicationOf(appCompose).compose);
}

export function imagesOf({ services }: ComposeFile): Map<string, string> {
  return new Map([...services].map(([name, service]) => [name, imageOf(name, service)]));
}

function imageOf(name: string, { image }: Members): string {
  if (typeof image !== "string" || !PINNED.test(image))
    throw new Malformed(`the service "${name}" does not name its image by digest (…@sha256:…)`);
  return image;
}

/** Throws Malformed for a file with anything that this check does not know. */
export function composeFileOf(text: string): ComposeFile {
  const file = membersOf(yamlOf(text), "docker_compose_file");
  const unknown = given(file).find(([name]) => !FILE_MEMBERS.has(name) && !name.startsWith("x-"));
  if (unknown !== undefined)
    throw new Malformed(`docker_compose_file has "${unknown[0]}": it could bring in code that no image's digest fixes`);
  const services = Object.entries(membersOf(file["services"], "services of docker_compose_file")).map(
    ([name, service]) => [name, serviceOf(name, service)] as const,
  );
  if (services.length === 0) throw new Malformed("docker_compose_file has no services");
  checkResources(file["networks"], "network");
  const networks = Object.keys(membersOf(file["networks"] ?? {}, "networks"));
  if (networks.some((name) => name !== "default"))
    throw new Malformed("docker_compose_file has a network beside the default one");
  return { services: new Map(services), volumes: checkResources(file["volumes"], "volume") };
}

function serviceOf(name: string, value: unknown): Members {
  if (!SERVICE_NAME.test(name)) throw new Malformed(`the service "${name}" could have the name of another host`);
  const service = membersOf(value, `the service "${name}"`);
  const unknown = given(service).find(([member]) => !SERVICE_MEMBERS.has(member));
  if (unknown !== undefined)
    throw new Malformed(`the service "${name}" has "${unknown[0]}": its code is not fixed by a digest`);
  const { networks } = service;
  const joined = Array.isArray(networks)
    ? (networks as unknown[]).map((network) => [network, null])
    : Object.entries(membersOf(networks ?? {}, `the networks of the service "${name}"`));
  if (joined.some(([network, settings]) => network !== "default" || !isEmpty(settings)))
    throw new Malformed(`the service "${name}" has a network or a network name of its own`);
  return service;
}

/** Volumes or networks without a driver or options, each another one than the rest. */
function checkResources(value: unknown, kind: string): Set<string> {
  const resources = Object.entries(membersOf(value ?? {}, `${kind}s of docker_compose_file`));
  const names = resources.map(([key, settings]) => {
    const { name, ...others } = membersOf(settings ?? {}, `the ${kind} "${key}"`);
    if (!RESOURCE_NAME.test(key) || Object.values(others).some((other) => !isEmpty(other)))
      throw new Malformed(`the ${kind} "${key}" has more than a name: it could be one of the machine's own`);
    if (name !== undefined && (typeof name !== "string" || !RESOURCE_NAME.test(name)))
      throw new Malformed(`the ${kind} "${key}" has no plain name`);
    return name;
  });
  // One with a name and one without may be the same: what compose names the latter depends on the project.
  const named = names.filter((name) => name !== undefined);
  if (new Set(named).size !== named.length || (named.length > 0 && named.length !== names.length))
    throw new Malformed(`two ${kind}s may have the same name`);
  return new Set(resources.map(([key]) => key));
}

/** @throws Malformed */
export function membersOf(value: unknown, what: string): Members {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Malformed(`${what} is missing or no mapping`);
  return value as Members;
}

/** One string counts as a list of one. @throws Malformed */
export function stringsOf(value: unknown, what: string): string[] {
  const list: unknown[] = value === undefined || value === null ? [] : [value].flat();
  if (list.some((item) => typeof item !== "string")) throw new Malformed(`${what} is no list of strings`);
  return list as string[];
}

/** Compose takes a member without a value as one that is not there. */
const given = (members: Members): [string, unknown][] => Object.entries(members).filter(([, value]) => value !== null);

/** What `docker compose config` writes for settings that are not set. */
export const isEmpty = (value: unknown): boolean =>
  [undefined, null, false, ""].includes(value as null) ||
  (typeof value === "object" && value !== null && Object.keys(value).length === 0);

/** Parses with merge keys, as compose does; the library's own limit stops alias bombs. */
function yamlOf(text: string): unknown {
  // Compose's parser takes more characters for line ends than ours: one could end a comment there and not here.
  if (/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.test(text.replace(/\r?\n/g, "")))
    throw new Malformed("docker_compose_file has a control character");
  try {
    // Not `silent`, with which the library passes over a second document; it prints nothing here.
    const document = parseDocument(text, { merge: true, logLevel: "error" });
    if (document.errors.length === 0 && document.warnings.length === 0 && isPlain(document))
      return document.toJS({ maxAliasCount: 100 }) as unknown;
  } catch {
    // As below.
  }
  throw new Malformed("docker_compose_file is not plain YAML");
}

/**
 * Without what compose's parser, of an older YAML, could read otherwise. Compose has tags of its own, which take values
 * away, and two merge keys in one mapping have no defined order.
 */
function isPlain(document: Document.Parsed): boolean {
  let plain = document.directives.yaml.explicit !== true;
  visit(document, (_, node) => void (plain &&= !isNode(node) || isPlainNode(node)));
  return plain;
}

function isPlainNode(node: Node): boolean {
  const { tag, anchor = "a" } = node as { tag?: string; anchor?: string };
  if (tag !== undefined || !/^[A-Za-z0-9_-]+$/.test(anchor)) return false;
  if (isScalar(node)) return !node.type?.startsWith("BLOCK_");
  return !isMap(node) || node.items.filter(({ key }) => isScalar(key) && key.source === "<<").length < 2;
}
