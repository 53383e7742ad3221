/** Maps every error to application/problem+json. */
import { isInternal, asKeywrightError, retryAfterOf } from "../errors";
import type { Logger } from "../../protocol/log";
import { PROBLEM_TYPE, problemOf } from "../../protocol/http";
import { RECEIPT_HEADER } from "../../protocol/receipt";
import type { RelayerMiddleware } from "./context";

export function problems(log: Logger): RelayerMiddleware {
  return async (ctx, next) => {
    try {
      await next();
    } catch (thrown) {
      const error = asKeywrightError(thrown);
      ctx.state.errorCode = error.code;
      const level = isInternal(error) ? "error" : error.status >= 500 ? "warn" : "debug";
      // Log only the code of a refusal: its detail may quote the client (e.g. a field name).
      const cause = error.status >= 500 ? { err: thrown } : {};
      log[level]({ requestId: ctx.state.requestId, route: ctx.state.route, error: error.code, ...cause }, "refused");
      const retryAfter = retryAfterOf(error);
      if (retryAfter !== undefined) ctx.set("Retry-After", String(retryAfter));
      const { receipt } = error.facts;
      if (typeof receipt === "string") ctx.set(RECEIPT_HEADER, receipt);
      if (error.status === 401) ctx.set("WWW-Authenticate", "Bearer");
      ctx.status = error.status;
      ctx.body = JSON.stringify(problemOf(error, ctx.state.requestId, `${ctx.protocol}://${ctx.host}`));
      ctx.type = PROBLEM_TYPE;
    }
  };
}
