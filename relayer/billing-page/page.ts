/**
 * The checkout page as one HTML document: style and script are inside it, named by hash in the content security policy, so nothing else can run there.
 * Only with the processor's own keys does it load anything from elsewhere: Stripe.js, which keeps card numbers away from us.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

export interface BillingPage {
  readonly html: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Where card fields are filled in: Stripe.js, or the form of our own that talks to the development double at this address. */
export type CardFields = { readonly kind: "stripe" } | { readonly kind: "double"; readonly url: string };

const STRIPE_SCRIPT = "https://js.stripe.com/endive/stripe.js";
const STRIPE_POLICY = {
  script: ["https://js.stripe.com", "https://*.js.stripe.com"],
  frame: ["https://js.stripe.com", "https://*.js.stripe.com", "https://hooks.stripe.com"],
  connect: ["https://api.stripe.com"],
};

/** Puts the page together from what the build has left in `directory`. */
export function loadBillingPage(cardFields: CardFields, directory: string = __dirname): BillingPage {
  const [html, style, script] = ["page.html", "page.css", "checkout.js"].map((file) => readFileSync(join(directory, file), "utf8")) as [string, string, string];
  return assembleBillingPage(cardFields, { html, style, script });
}

export interface PageParts {
  readonly html: string;
  readonly style: string;
  readonly script: string;
}

export function assembleBillingPage(cardFields: CardFields, { html, style, script }: PageParts): BillingPage {
  const filled = html
    .replace("<!-- style -->", () => `<style>${style}</style>`)
    .replace("<!-- stripe -->", () => (cardFields.kind === "stripe" ? `<script src="${STRIPE_SCRIPT}"></script>` : ""))
    .replace("<!-- script -->", () => `<script>${script}</script>`)
    .replace("data-double", () => (cardFields.kind === "double" ? `data-double="${new URL(cardFields.url).origin}"` : ""));
  return { html: filled, headers: { "Content-Security-Policy": policy(cardFields, style, script), "Referrer-Policy": "no-referrer" } };
}

function policy(cardFields: CardFields, style: string, script: string): string {
  const stripe = cardFields.kind === "stripe" ? STRIPE_POLICY : { script: [], frame: ["'none'"], connect: [new URL(cardFields.url).origin] };
  const rules = {
    "default-src": ["'none'"],
    "script-src": [hashOf(script), ...stripe.script],
    "style-src": [hashOf(style)],
    "connect-src": ["'self'", ...stripe.connect],
    "frame-src": stripe.frame,
    "img-src": ["data:"],
    "base-uri": ["'none'"],
    "form-action": ["'none'"],
    "frame-ancestors": ["'none'"],
  };
  return Object.entries(rules)
    .map(([name, values]) => `${name} ${values.join(" ")}`)
    .join("; ");
}

const hashOf = (content: string): string => `'sha256-${createHash("sha256").update(content).digest("base64")}'`;
