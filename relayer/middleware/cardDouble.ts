/**
 * In development the card form uses the double of the payment processor instead of Stripe.js. Requests are proxied
 * through this service, so that the page needs no other origin. Never mounted in production, where the processor's
 * address cannot be changed.
 */
import { readBody } from "./body";
import type { RelayerMiddleware } from "./context";
import { KeywrightError } from "../../protocol/errors";

const PREFIX = "/billing/double";
/** The requests a browser makes with a publishable key: one intent, and payment methods. */
const FORWARDED = /^\/v1\/(payment_methods|payment_intents\/pi_[A-Za-z0-9]+(\/(confirm|authenticate))?)$/;

export function cardDouble(apiBase: string): RelayerMiddleware {
  const origin = new URL(apiBase).origin;
  return async (ctx, next) => {
    const path = ctx.path.startsWith(PREFIX) ? ctx.path.slice(PREFIX.length) : "";
    if (!FORWARDED.test(path) || !["GET", "POST"].includes(ctx.method)) return next();
    const authorization = ctx.get("Authorization");
    if (!authorization.startsWith("Bearer pk_test_"))
      throw new KeywrightError("missing_credential", "The double needs a publishable test key here.");
    const body = ctx.method === "GET" ? {} : { body: (await readBody(ctx, "json")).bytes };
    const headers = { authorization, "content-type": "application/x-www-form-urlencoded" };
    const answer = await fetch(`${origin}${path}${ctx.search}`, { method: ctx.method, headers, ...body });
    ctx.status = answer.status;
    ctx.type = "application/json";
    ctx.body = await answer.text();
  };
}
