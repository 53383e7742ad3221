/**
 * All inputs of a verification, fetched once. A failed fetch is kept with its reason and affects only the steps that
 * need it.
 */
import { z } from "zod";
import { parseAddress, parseHash32, type Address, type Hash32 } from "../../protocol/ids";
import { API_PREFIX } from "../../protocol/http/route";
import { certificateFiles, MAX_EVIDENCE_BYTES, parseChecksums } from "./files";
import { get, type Got } from "./http";
import { Malformed } from "./types";
import { defined } from "../../protocol/defined";
import { MIB } from "../../protocol/limits";

const MAX_FILES = 32;
const MAX_PACKAGES = 8;

/** Not provided by the service: the steps that need it are not checked. */
export class Unavailable extends Error {
  override readonly name = "Unavailable";
}

/** Returns the value, or throws Malformed or Unavailable. */
export type Lazy<T> = () => T;

const hex = z.string().regex(/^([0-9a-fA-F]{2})*$/);
const digest = z.string().regex(/^[0-9a-fA-F]{64}$/);

const infoSchema = z.looseObject({
  tee: z.string().max(32),
  root_commitment: z.string().optional(),
  config: z.record(z.string(), z.unknown()),
  app_id: hex.optional(),
  compose_hash: hex.optional(),
  device_id: hex.optional(),
  tcb_info: z.looseObject({ app_compose: z.string() }).optional(),
});
export type Info = z.infer<typeof infoSchema>;

const attestationSchema = z.looseObject({
  quote: z.string(),
  event_log: z.string(),
  config_sha256: digest.optional(),
  tls_leaf_sha256: digest.optional(),
});
export type Attestation = z.infer<typeof attestationSchema>;

/** File name → hash in the form of npm's lockfiles. */
export const packagesSchema = z
  .record(z.string().regex(/^[a-z][a-z0-9.-]{0,63}\.tgz$/), z.string().regex(/^sha512-[A-Za-z0-9+/]{86}==$/))
  .refine((all) => Object.keys(all).length <= MAX_PACKAGES);

const chainConfigSchema = z.looseObject({
  contract_address: z.string().transform(orMalformed(parseAddress)),
  chain_id: z.int().positive(),
  key_namespace: z.string().transform(orMalformed(parseHash32)),
});
export interface ChainConfig {
  contract_address: Address;
  chain_id: number;
  key_namespace: Hash32;
}

const limitsSchema = z.looseObject({ run: z.record(z.string(), z.number()), prices: z.record(z.string(), z.number()) });
export type Limits = z.infer<typeof limitsSchema>;

export interface Material {
  readonly secure: boolean;
  readonly host: string;
  readonly info: Lazy<Info>;
  readonly attestation: Lazy<Attestation>;
  /** The leaf certificate of the connection that delivered the attestation. */
  readonly leaf: Lazy<Buffer>;
  readonly chainConfig: Lazy<ChainConfig>;
  /** The service's stated limits and prices. */
  readonly limits: Lazy<Limits>;
  /** `sha256sum.txt`, byte for byte. */
  readonly checksums: Lazy<Buffer>;
  readonly quoteFile: Lazy<Buffer>;
  /** The files the checksum list names. */
  readonly files: Lazy<ReadonlyMap<string, Lazy<Buffer>>>;
  /** The packages that the config document names. */
  readonly packages: Lazy<ReadonlyMap<string, Lazy<Buffer>>>;
}

export interface CollectOptions {
  readonly nonce: Buffer;
  readonly timeoutMs: number;
  readonly ca?: string;
  /** Instead of the network: recorded evidence. */
  readonly fetch?: Fetch;
}

export type Fetch = typeof get;

export async function collect(baseUrl: URL, { nonce, timeoutMs, ca, fetch = get }: CollectOptions): Promise<Material> {
  const fetched = (path: string, maxBytes = MAX_EVIDENCE_BYTES): Promise<Lazy<Got>> =>
    outcomeOf(fetch(new URL(path, baseUrl), { maxBytes, timeoutMs, ...defined({ ca }) }), path);
  const [info, attestation, chainConfig, limits, checksums, quoteFile] = await Promise.all([
    fetched("/info", 8 * MIB),
    fetched(`/attestation?nonce=${nonce.toString("hex")}`, 8 * MIB),
    fetched(`${API_PREFIX}/get_node_chain_config`, MIB),
    fetched(`${API_PREFIX}/limits`, MIB),
    fetched("/evidences/sha256sum.txt"),
    fetched("/evidences/quote.json"),
  ]);
  const files = await filesOf(checksums, (name) => fetched(`/evidences/${name}`));
  const packages = await packagesOf(info, (name) => fetched(`/packages/${name}`, 16 * MIB));
  return {
    secure: baseUrl.protocol === "https:",
    host: baseUrl.hostname,
    info: lazily(() => shaped(infoSchema, info(), "/info")),
    attestation: lazily(() => shaped(attestationSchema, attestation(), "/attestation")),
    leaf: lazily(() => attestation().leaf ?? unavailable("the connection has no certificate (plain HTTP)")),
    chainConfig: lazily(() => shaped(chainConfigSchema, chainConfig(), "get_node_chain_config")),
    limits: lazily(() => shaped(limitsSchema, limits(), "limits")),
    checksums: () => checksums().body,
    quoteFile: () => quoteFile().body,
    files,
    packages,
  };
}

async function packagesOf(
  info: Lazy<Got>,
  fetched: (name: string) => Promise<Lazy<Got>>,
): Promise<Material["packages"]> {
  const names = lazily(() => Object.keys(packagesSchema.parse(shaped(infoSchema, info(), "/info").config["packages"])));
  const bodies = new Map<string, Lazy<Buffer>>();
  for (const name of stated(names)) {
    const file = await fetched(name);
    bodies.set(name, () => file().body);
  }
  return () => bodies;
}

const stated = (names: Lazy<string[]>): string[] => {
  try {
    return names();
  } catch {
    return [];
  }
};

async function filesOf(
  checksums: Lazy<Got>,
  fetched: (name: string) => Promise<Lazy<Got>>,
): Promise<Material["files"]> {
  const names = lazily(() => [...parseChecksums(checksums().body).keys()]);
  let list: string[];
  try {
    list = names();
  } catch {
    return () => new Map(names().map((name) => [name, () => unavailable(name)]));
  }
  if (list.length > MAX_FILES) return () => malformed(`sha256sum.txt names ${list.length} files`);
  const bodies = new Map<string, Lazy<Buffer>>();
  for (const name of list) {
    const file = await fetched(name);
    bodies.set(name, () => file().body);
  }
  return () => bodies;
}

/** The certificate files in the evidence, the host's own first. */
export function certificatesOf(material: Material): string[] {
  const own = `cert-${material.host}.pem`;
  return certificateFiles(material.files().keys()).sort((one, other) => Number(other === own) - Number(one === own));
}

async function outcomeOf(pending: Promise<Got>, path: string): Promise<Lazy<Got>> {
  const name = path.split("?")[0] ?? path;
  try {
    const got = await pending;
    return () => (got.status === 200 ? got : unavailable(`${name} answered ${got.status}`));
  } catch (error) {
    return () => unavailable(error instanceof Error ? error.message : `${name} could not be fetched`);
  }
}

function shaped<T>(schema: z.ZodType<T>, { body }: Got, name: string): T {
  let value: unknown;
  try {
    value = JSON.parse(body.toString("utf8"));
  } catch {
    return malformed(`${name} is not JSON`);
  }
  const parsed = schema.safeParse(value);
  const issue = parsed.error?.issues[0];
  return parsed.success
    ? parsed.data
    : malformed(`${name} has the wrong form at ${issue?.path.join(".") || "its top"}`);
}

/** Computes once; caches a failure as well. */
export function lazily<T>(compute: () => T): Lazy<T> {
  let kept: Lazy<T> | undefined;
  return () => (kept ??= settle(compute))();
}

function settle<T>(compute: () => T): Lazy<T> {
  try {
    const value = compute();
    return () => value;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

function orMalformed<T>(parse: (text: string) => T | undefined): (text: string, context: z.RefinementCtx) => T {
  return (text, context) => {
    const value = parse(text);
    if (value === undefined) context.addIssue({ code: "custom", message: "wrong form" });
    return value ?? z.NEVER;
  };
}

function unavailable(reason: string): never {
  throw new Unavailable(reason);
}

function malformed(reason: string): never {
  throw new Malformed(reason);
}
