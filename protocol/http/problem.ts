/** The body of every error: application/problem+json (RFC 9457) with the error code. Source: docs/conformance.md §7. */
import { z } from "zod";
import { ERRORS, type ErrorCode, type KeywrightError } from "../errors";

export const PROBLEM_TYPE = "application/problem+json";

export const problemSchema = z
  .looseObject({
    type: z.string().meta({ description: "Where the code is explained." }),
    title: z.string(),
    status: z.int(),
    detail: z.string().meta({ description: "What to fix." }),
    // No enum: codes may be added.
    code: z.string().meta({ description: "Explained at /docs/errors.", examples: Object.keys(ERRORS) }),
    request_id: z.string(),
    retryable: z.boolean().meta({
      description:
        "Whether the same request may succeed later. False for idempotency_in_progress, where it has to be repeated " +
        "with the same Idempotency-Key after Retry-After.",
    }),
    message: z.string().meta({ description: "The same as detail, for older clients." }),
    errors: z
      .array(z.object({ field: z.string(), message: z.string() }))
      .optional()
      .meta({ description: "Every failing field." }),
    submission_id: z.string().optional(),
    required_cents: z.int().optional(),
    balance_cents: z.int().optional(),
    charged: z.boolean().optional(),
    transaction_hash: z.string().optional(),
  })
  .meta({ id: "Problem" });
export type Problem = z.infer<typeof problemSchema>;

/** URL path of a code's section in docs/errors.md, relative to the service's origin. */
export const problemType = (code: ErrorCode): string => `/docs/errors#${code}`;

/**
 * `origin` makes the type an absolute URL. Facts are spread first, so that none can override a member of the problem.
 */
export function problemOf(error: KeywrightError, requestId: string, origin = ""): Problem {
  const { title } = ERRORS[error.code];
  return {
    ...error.facts,
    type: origin + problemType(error.code),
    title,
    status: error.status,
    detail: error.detail,
    code: error.code,
    request_id: requestId,
    retryable: error.retryable,
    message: error.detail,
  };
}
