/** What each policy template takes, as schemas. */
import { isAddress } from "ethers";
import { z } from "zod";
import { BUDGET_NAME, MAX_AMOUNT, WINDOWS } from "../protocol/budgetTerms";
import { argumentTypes } from "./policyTypes";

const address = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, "must be 0x and 40 hex digits")
  .refine(isAddress, "has a wrong checksum (EIP-55): compare it with its source")
  .transform((text) => text.toLowerCase());
/** A whole number as decimal text. */
const amount = z
  .union([
    z.int().nonnegative().transform(String),
    z.string().regex(/^(0|[1-9][0-9]{0,77})$/, "must be a whole number"),
  ])
  .refine((text) => BigInt(text) < 2n ** 256n, "is too large");
const unique = <T extends z.ZodType<unknown, unknown>>(item: T) =>
  z.array(item).transform((list) => [...new Set(list)].sort() as z.output<T>[]);

/** Default: 0.01 of a coin with 18 decimals. */
const DEFAULT_MAX_FEE = "10000000000000000";

/** What counts against a limit over time: the amount is a field of what is signed. */
const budget = z.strictObject({
  name: z.string().regex(BUDGET_NAME, "must be 1 to 31 letters, digits and . : - _"),
  amount: z.string(),
  limit: amount.refine((value) => BigInt(value) <= MAX_AMOUNT, "is above 2^128 - 1"),
  window: z.enum(WINDOWS, `must be one of ${WINDOWS.join(", ")}`),
});

const shared = {
  /** Each spend is counted on the chain before the signature; several at once must all hold. */
  budgets: z
    .array(budget)
    .min(1, "must name a budget")
    .max(4, "are at most 4: each may cost a write")
    .refine((all) => new Set(all.map(({ name, window }) => `${name} ${window}`)).size === all.length, "name one twice")
    .optional(),
  /** Hours of the day in UTC: [from, to]. */
  hours: z
    .tuple([z.int().min(0).max(23), z.int().min(0).max(24)])
    .refine(([from, to]) => from !== to, "must be two different hours")
    .optional(),
  /** At least `threshold` of these must have signed the same content. */
  approvers: z
    .strictObject({ of: unique(address), threshold: z.int().min(1) })
    .refine(({ of, threshold }) => threshold <= of.length, "threshold is more than there are approvers")
    .optional(),
};
const transactions = {
  chain: amount.refine((text) => text !== "0", "must be the id of a chain"),
  maxFee: amount.default(DEFAULT_MAX_FEE),
  ...shared,
};

const text = z.string().refine((value) => value.isWellFormed(), "holds half a surrogate pair");
/** A whole number as decimal text, also a negative one: bounds of signed types. */
const whole = z.union([
  z.int().transform(String),
  z.string().regex(/^(0|-?[1-9][0-9]{0,77})$/, "must be a whole number"),
]);
/** What fits which type is in `policyTypes`. */
const rule = z
  .strictObject({
    in: z.array(text).min(1, "must name a value").optional(),
    min: whole.optional(),
    max: whole.optional(),
  })
  .transform((given) => Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)));
const identifier = z
  .string()
  .regex(/^[A-Za-z_$][A-Za-z0-9_$]*$/, "must be an identifier")
  .refine((name) => name !== "__proto__", "must be another name");
const typeName = z.string().regex(/^[A-Za-z_$][A-Za-z0-9_$]*(\[([1-9]\d{0,8})?\])*$/, "must be a type");

/** `transfer(address,uint256)`: canonical types, as used for selectors. */
const signature = z
  .string()
  .max(1_000)
  .refine(
    (called) => argumentTypes(called) !== undefined,
    "must be a function's signature with canonical types, for example transfer(address,uint256)",
  );

export const POLICY_PARAMETERS = {
  /** Plain transfers: `to` these addresses, at most `max` wei each. */
  "transfer-limits": z.strictObject({
    ...transactions,
    to: unique(address).refine((list) => list.length > 0, "must name an address"),
    max: amount,
  }),
  /** Calls of these functions of these contracts; a rule for each argument, {} for any value. */
  "contract-calls": z.strictObject({
    ...transactions,
    calls: z
      .array(z.strictObject({ to: address, function: signature, args: z.array(rule), max: amount.default("0") }))
      .min(1, "must name a function"),
  }),
  /** Typed data of one type, for these domains; rules by the path of a field, array indexes left out. */
  "typed-data": z.strictObject({
    ...shared,
    domains: z
      .array(
        z
          .strictObject({
            name: text.optional(),
            version: text.optional(),
            chainId: amount.optional(),
            verifyingContract: address.optional(),
            salt: z
              .string()
              .regex(/^0x[0-9a-f]{64}$/)
              .optional(),
          })
          .refine((domain) => Object.keys(domain).length > 0, "must say something"),
      )
      .min(1, "must name a domain"),
    primaryType: identifier,
    types: z.record(identifier, z.array(z.strictObject({ name: identifier, type: typeName })).min(1)),
    fields: z.record(z.string().regex(/^[A-Za-z0-9_$.]+$/), rule).default({}),
  }),
} as const;

/** What callers write for each template. The package has it written out, without schemas. */
export type PolicyInputs = {
  readonly [Template in keyof typeof POLICY_PARAMETERS]: z.input<(typeof POLICY_PARAMETERS)[Template]>;
};
