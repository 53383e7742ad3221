/** Stripe's request encoding: `a[b]=1&c[0]=2` (in a body or a query) to nested values with text leaves. */
import { z } from "zod";
import { invalidRequest, type StripeHttpError } from "./errors";

export type FormValue = string | FormValue[] | { [name: string]: FormValue };

export function decodeForm(text: string): Record<string, FormValue> {
  const root: Record<string, FormValue> = {};
  for (const [name, value] of new URLSearchParams(text)) put(root, pathOf(name), value);
  return arraysIn(root) as Record<string, FormValue>;
}

function pathOf(name: string): string[] {
  return name.split("[").map((part) => part.replace(/\]$/, ""));
}

function put(into: Record<string, FormValue>, path: readonly string[], value: string): void {
  const [head = "", ...rest] = path;
  const key = head === "" ? String(Object.keys(into).length) : head;
  if (rest.length === 0) {
    into[key] = value;
    return;
  }
  const next =
    Object.hasOwn(into, key) && typeof into[key] === "object" && !Array.isArray(into[key])
      ? into[key]
      : Object.create(null);
  into[key] = next;
  put(next as Record<string, FormValue>, rest, value);
}

function arraysIn(value: FormValue): FormValue {
  if (typeof value === "string" || Array.isArray(value)) return value;
  const entries = Object.entries(value).map(([name, inner]) => [name, arraysIn(inner)] as const);
  const isArray = entries.length > 0 && entries.every(([name], at) => name === String(at));
  return isArray ? entries.map(([, inner]) => inner) : Object.fromEntries(entries);
}

/** Whole numbers arrive as text. */
export const integer = z.string().transform((text, context) => {
  if (/^-?\d{1,15}$/.test(text)) return Number(text);
  context.addIssue({
    code: "custom",
    message: `Invalid integer: ${text}`,
    params: { code: "parameter_invalid_integer" },
  });
  return z.NEVER;
});

export const metadata = z.record(z.string().max(40), z.string().max(500)).default({});

/** Parses the parameters; throws Stripe's error for the first invalid one. */
export function parameters<T extends z.ZodType>(schema: T, form: Record<string, FormValue>): z.output<T> {
  const parsed = schema.safeParse(form);
  if (parsed.success) return parsed.data;
  throw errorOf(parsed.error.issues[0], form);
}

function errorOf(issue: z.core.$ZodIssue | undefined, form: Record<string, FormValue>): StripeHttpError {
  if (issue === undefined) return invalidRequest("Invalid request");
  if (issue.code === "unrecognized_keys") return unknownParameter(issue.keys[0] ?? "");
  const param = bracketed(issue.path);
  if (!Object.hasOwn(form, String(issue.path[0])))
    return invalidRequest(`Missing required param: ${param}.`, { code: "parameter_missing", param });
  const code = issue.code === "custom" && typeof issue.params?.code === "string" ? { code: issue.params.code } : {};
  return invalidRequest(issue.message, { ...code, param });
}

function unknownParameter(param: string): StripeHttpError {
  return param === "payment_method_types"
    ? invalidRequest("payment_method_types can no longer be set; use allowed_payment_method_types.", {
        code: "payment_method_types_no_longer_supported",
        param,
      })
    : invalidRequest(`Received unknown parameter: ${param}`, { code: "parameter_unknown", param });
}

function bracketed(path: readonly PropertyKey[]): string {
  const [head, ...rest] = path.map(String);
  return [head ?? "", ...rest.map((part) => `[${part}]`)].join("");
}
