/**
 * The TLS ingress's configuration and the only reader of its environment. An invalid value prevents the start and says
 * what to fix.
 */
import { isAbsolute } from "node:path";
import { z } from "zod";

const absolutePath = z.string().refine(isAbsolute, "must be an absolute path");
const port = z.coerce.number("must be a number").int().min(0).max(65_535);
const url = z.url({ protocol: /^https?$/ });

const environment = z.object({
  DOMAIN: z
    .string()
    .regex(
      /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/,
      "must be a host name in lower case",
    )
    .describe("the name the service is reached under; its certificate is for this name alone"),
  ACME_DIRECTORY_URL: url
    .default("https://acme-v02.api.letsencrypt.org/directory")
    .describe("the certificate authority's ACME directory"),
  ACME_EMAIL: z.email().optional().describe("where the certificate authority writes about problems"),
  UPSTREAM_URL: url.describe("the relayer, to which requests are forwarded"),
  HTTPS_PORT: port.default(8443).describe("port of the TLS endpoint; publish it as 443"),
  HTTP_PORT: port
    .default(8080)
    .describe("answers the authority's challenges and redirects all other requests to https; publish it as 80"),
  PROXY_PROTOCOL: z
    .enum(["true", "false"])
    .default("false")
    .transform((value) => value === "true")
    .describe(
      "whether a load balancer forwards TLS connections and sends the client's address before each (PROXY " +
        "protocol, version 1)",
    ),
  EVIDENCE_DIR: absolutePath.describe(
    "the folder it fills with certificate, account, checksums and quote; the relayer serves it",
  ),
  STATE_DIR: absolutePath.describe("keeps the account's and the certificate's private keys; a volume of the TEE"),
  EXECUTOR_SOCKET: absolutePath.describe("the executor's Unix socket, for the quote over the evidence"),
  LOG_LEVEL: z
    .enum(["fatal", "error", "warn", "info", "debug", "trace"])
    .default("info")
    .describe("least severe line to log; no level logs a secret"),
});
export type Config = z.infer<typeof environment>;

/** Every variable with its description. */
export const INGRESS_VARIABLES: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(environment.shape).map(([name, schema]) => [name, schema.description ?? ""]),
);

/** @throws Error naming every invalid variable and what it should be. */
export function readConfig(env: Readonly<Record<string, string | undefined>> = process.env): Config {
  const parsed = environment.safeParse(Object.fromEntries(Object.entries(env).filter(([, value]) => value !== "")));
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => `  ${issue.path.join(".")}: ${issue.message}`);
  throw new Error(`Invalid configuration:\n${problems.join("\n")}`);
}
