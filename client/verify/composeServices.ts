/**
 * Whether the services that a source builds run as the source's own compose file says, and no other service can reach
 * into them: an image's digest fixes neither its variables and mounts nor who answers under its name.
 */
import canonicalize from "canonicalize";
import {
  composeFileOf,
  isEmpty,
  membersOf,
  stringsOf,
  type Application,
  type ComposeFile,
  type Members,
} from "./compose";
import { Malformed } from "./types";

/** Names of services that the source builds. */
type Built = readonly string[];

/**
 * The services that are not of the source. Throws Malformed naming what differs from the source's compose file, which
 * may be rendered (`docker compose config`) or not.
 */
export function checkServices({ compose, allowedEnvs }: Application, sourceText: string, built: Built): string[] {
  const source = composeFileOf(sourceText);
  const variables = new Set([...sourceText.matchAll(/\$\{?([A-Za-z_]\w*)/g)].map(([, name]) => name));
  const foreign = allowedEnvs.find((name) => name !== "COMPOSE_PROFILES" && !variables.has(name));
  if (foreign !== undefined)
    throw new Malformed(`allowed_envs has ${foreign}, which is no variable of the source's compose file`);
  for (const name of built) {
    const service = serviceOf(compose, name, "the compose file");
    const own = serviceOf(source, name, "the source's compose file");
    checkOwn(name, service, own);
    checkOpen(name, service, own, allowedEnvs);
  }
  const kept = new Set(built.flatMap((name) => mountsOf(source.services.get(name) ?? {}).map((mount) => mount.source)));
  const others = [...compose.services].filter(([name]) => !built.includes(name));
  for (const [name, service] of others) checkOther(name, service, compose, kept);
  return others.map(([name]) => name);
}

function serviceOf({ services }: ComposeFile, name: string, what: string): Members {
  const service = services.get(name);
  if (service === undefined) throw new Malformed(`${what} has no service "${name}", which the source builds`);
  return service;
}

interface Mount {
  readonly type: string;
  readonly source: string;
  readonly target: string;
  readonly isReadOnly: boolean;
}

/** Members in a form in which both ways of writing them are the same. Members that are not here change no program. */
const FORMS: Readonly<Record<string, (service: Members) => unknown>> = {
  healthcheck: ({ healthcheck }) => checkOf(healthcheck),
  cap_add: ({ cap_add: added }) => stringsOf(added, "cap_add").sort(),
  cap_drop: ({ cap_drop: dropped }) => stringsOf(dropped, "cap_drop").sort(),
  // Where the host's AppArmor forbids mounts in containers, the executor runs without (docs/operations.md).
  security_opt: ({ security_opt: options }) =>
    stringsOf(options, "security_opt").filter((option) => !/^apparmor[=:]unconfined$/.test(option)),
  read_only: ({ read_only: isReadOnly }) => isReadOnly ?? false,
  volumes: (service) => mountsOf(service).sort((one, other) => (one.target < other.target ? -1 : 1)),
  tmpfs: ({ tmpfs }) => stringsOf(tmpfs, "tmpfs").sort(),
  profiles: ({ profiles }) => stringsOf(profiles, "profiles").sort(),
};

const CHECK_TIMES = new Set(["interval", "timeout", "retries", "start_period", "start_interval"]);

/** Without the times, which have many forms and start no program. */
function checkOf(healthcheck: unknown): unknown {
  if (isEmpty(healthcheck)) return null;
  return Object.fromEntries(
    Object.entries(membersOf(healthcheck, "healthcheck")).filter(([name]) => !CHECK_TIMES.has(name)),
  );
}

function mountsOf({ volumes }: Members): Mount[] {
  if (!Array.isArray(volumes ?? [])) throw new Malformed("the volumes of a service are no list");
  return ((volumes ?? []) as unknown[]).map((volume) =>
    typeof volume === "string" ? shortMount(volume) : longMount(membersOf(volume, "a volume")),
  );
}

function shortMount(text: string): Mount {
  // Compose puts values in before it splits: a variable alone could become a source and a target.
  if (text.includes("$")) throw new Malformed(`the volume "${text}" has a variable`);
  const [one = "", target, mode = "rw", ...more] = text.split(":");
  if (more.length > 0 || !["ro", "rw"].includes(mode)) throw new Malformed(`the volume "${text}" has unknown options`);
  if (target === undefined) return { type: "volume", source: "", target: one, isReadOnly: false };
  return { type: /^[./~]/.test(one) ? "bind" : "volume", source: one, target, isReadOnly: mode === "ro" };
}

function longMount({ type, source = "", target, read_only: isReadOnly = false, bind, ...others }: Members): Mount {
  const { create_host_path: _, ...bound } = membersOf(bind ?? {}, "bind of a volume");
  const parts = [type, source, target];
  if (parts.some((part) => typeof part !== "string") || typeof isReadOnly !== "boolean")
    throw new Malformed("a volume has no type, source and target");
  if (!isEmpty(bound) || Object.values(others).some((other) => !isEmpty(other)))
    throw new Malformed(`the volume of ${String(target)} has unknown options`);
  return { type, source, target, isReadOnly } as Mount;
}

function checkOwn(name: string, service: Members, own: Members): void {
  for (const [member, form] of Object.entries(FORMS))
    if (canonicalize(form(service)) !== canonicalize(form(own)))
      throw new Malformed(`the service "${name}" has another ${member} than the source's compose file`);
  const [actual, templates] = [environmentOf(service), environmentOf(own)];
  const unknown = [...actual.keys()].find((variable) => !templates.has(variable));
  if (unknown !== undefined)
    throw new Malformed(`the service "${name}" has the variable ${unknown}, which the source's compose file has not`);
  for (const [variable, template] of templates) {
    if (!mayBe(actual.get(variable), template))
      throw new Malformed(`the service "${name}" has another ${variable} than the source's compose file`);
  }
}

/** A value that is not measured could lead a path into another folder. What the source leaves open may be anything. */
function checkOpen(name: string, service: Members, own: Members, allowedEnvs: readonly string[]): void {
  const templates = environmentOf(own);
  for (const [variable, text] of environmentOf(service)) {
    if (typeof text !== "string" || isFree(templates.get(variable))) continue;
    const open = allowedEnvs.find((one) => new RegExp(`\\$\\{?${one}\\b`).test(text));
    if (open !== undefined)
      throw new Malformed(`${variable} of the service "${name}" contains ${open}, whose value is not measured`);
  }
}

/** Of both forms, a mapping and a list. */
function environmentOf({ environment }: Members): Map<string, unknown> {
  if (!Array.isArray(environment)) return new Map(Object.entries(membersOf(environment ?? {}, "environment")));
  const entries = stringsOf(environment, "environment").map((entry): [string, unknown] => {
    const end = entry.indexOf("=");
    return end < 0 ? [entry, null] : [entry.slice(0, end), entry.slice(end + 1)];
  });
  const variables = new Map(entries);
  if (variables.size !== entries.length) throw new Malformed("environment has a variable twice");
  return variables;
}

/** Whether the source's text may come to this value. A variable that is a part of it cannot lead into other folders. */
function mayBe(value: unknown, template: unknown): boolean {
  if (typeof template !== "string") return value === template;
  if (value === template || isFree(template)) return true;
  const parts = literalParts(template);
  const text = value ?? "";
  return typeof text === "string" && new RegExp(`^${parts.map(escaped).join("[^/]*")}$`).test(text);
}

/** Whether a text of the source is nothing but variables. */
function isFree(template: unknown): boolean {
  const parts = typeof template === "string" ? literalParts(template) : [];
  return parts.length > 1 && parts.join("") === "";
}

const escaped = (literal: string): string => literal.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&");

/** What is around the variables: `a${B:-${C}}d` has the parts `a` and `d`. */
function literalParts(template: string): string[] {
  const parts = [""];
  let depth = 0;
  for (let at = 0; at < template.length; at++) {
    const isStart = template.startsWith("${", at);
    if (isStart && depth === 0) parts.push("");
    if (depth === 0 && !isStart) parts.push(`${parts.pop() ?? ""}${template[at] ?? ""}`);
    if (isStart) depth++;
    else if (depth > 0 && template[at] === "}") depth--;
    if (isStart) at++;
  }
  return parts;
}

/** It cannot reach what the source's services hold, nor answer or listen in their place. */
function checkOther(name: string, service: Members, { volumes }: ComposeFile, kept: ReadonlySet<string>): void {
  const refuse = (what: string): never => {
    throw new Malformed(`the service "${name}", which is not of the source, ${what}`);
  };
  for (const { type, source } of mountsOf(service)) {
    if (type !== "tmpfs" && (type !== "volume" || (source !== "" && !volumes.has(source))))
      refuse(`mounts ${source} of the machine`);
    if (kept.has(source)) refuse(`mounts ${source}, which the source's services use`);
  }
  if (stringsOf(service["cap_add"], "cap_add").length > 0) refuse("has added capabilities");
  if (!stringsOf(service["cap_drop"], "cap_drop").some((dropped) => ["ALL", "NET_RAW"].includes(dropped)))
    refuse("may send packets in the name of others (cap_drop: NET_RAW)");
  if (stringsOf(service["security_opt"], "security_opt").some((option) => option !== "no-new-privileges:true"))
    refuse("has security options");
}
