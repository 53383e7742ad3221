/**
 * Serves the built dashboard: one page, and content-hashed files. The page's Content-Security-Policy allows nothing
 * else to run or load; files are sent compressed and are cacheable permanently.
 */
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { extname, join } from "node:path";

/**
 * Where card details are entered: Stripe.js, or in development the page's own form, which talks to the double through
 * this service.
 */
export type CardForm = "stripe" | "double";

export interface DashboardFile {
  readonly contentType: string;
  readonly content: Buffer;
  /** Set when `content` is compressed. */
  readonly encoding?: "br" | "gzip";
}

export interface Dashboard {
  page(): { readonly html: string; readonly headers: Readonly<Record<string, string>> };
  /** The file in the best encoding that the client accepts; undefined for an unknown name. */
  file(name: string, accepts: (encoding: string) => boolean): DashboardFile | undefined;
}

const TYPES: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};
const ENCODINGS = { br: ".br", gzip: ".gz" } as const;

const STRIPE = {
  script: ["https://js.stripe.com", "https://*.js.stripe.com"],
  frame: ["https://js.stripe.com", "https://*.js.stripe.com", "https://hooks.stripe.com"],
  connect: ["https://api.stripe.com"],
};
const NOTHING = { script: [], frame: ["'none'"], connect: [] };

export interface DashboardOptions {
  readonly folder: string;
  readonly serviceName: string;
  readonly cardForm: CardForm;
}

export function openDashboard({ folder, serviceName, cardForm }: DashboardOptions): Dashboard {
  const template = readFileSync(join(folder, "index.html"), "utf8")
    .replaceAll("__SERVICE_NAME__", serviceName)
    .replaceAll("__CARD_FORM__", cardForm);
  const files = readFiles(join(folder, "assets"));
  return {
    page: () => {
      const nonce = randomBytes(16).toString("base64");
      return {
        html: template.replaceAll("__NONCE__", nonce),
        headers: { "Content-Security-Policy": policy(cardForm, nonce), ...PAGE_HEADERS },
      };
    },
    file: (name, accepts) => {
      const contentType = TYPES[extname(name)];
      const plain = files.get(name);
      if (contentType === undefined || plain === undefined) return undefined;
      const encoding = (["br", "gzip"] as const).find((one) => accepts(one) && files.has(name + ENCODINGS[one]));
      const compressed = encoding && files.get(name + ENCODINGS[encoding]);
      return encoding && compressed ? { contentType, content: compressed, encoding } : { contentType, content: plain };
    },
  };
}

const PAGE_HEADERS = {
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin-allow-popups",
  "Permissions-Policy": "camera=(), geolocation=(), microphone=(), clipboard-write=(self), payment=(self)",
};

function readFiles(folder: string): ReadonlyMap<string, Buffer> {
  if (!existsSync(folder))
    throw new Error(`The dashboard is not built: ${folder} is missing. Run \`node scripts/build.mjs\`.`);
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));
}

/**
 * Styles injected by libraries at run time carry the nonce; scripts are this service's own files, or Stripe's when real
 * Stripe keys are configured.
 */
function policy(cardForm: CardForm, nonce: string): string {
  const card = cardForm === "stripe" ? STRIPE : NOTHING;
  const rules = {
    "default-src": ["'none'"],
    "script-src": ["'self'", ...card.script],
    "style-src": ["'self'", `'nonce-${nonce}'`],
    "connect-src": ["'self'", ...card.connect],
    "frame-src": card.frame,
    "img-src": ["'self'", "data:"],
    "base-uri": ["'none'"],
    "form-action": ["'none'"],
    "frame-ancestors": ["'none'"],
  };
  return Object.entries(rules)
    .map(([name, values]) => `${name} ${values.join(" ")}`)
    .join("; ");
}
