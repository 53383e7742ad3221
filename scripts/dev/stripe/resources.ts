/** The double's endpoints, each with the parameters Stripe documents for it. */
import { z } from "zod";
import { outcomeOfNumber } from "./cards";
import { badKey, invalidRequest, noSuch } from "./errors";
import { integer, metadata, parameters, type FormValue } from "./form";
import {
  listOf,
  newId,
  nowSeconds,
  type Customer,
  type Objects,
  type PaymentIntent,
  type PaymentMethod,
} from "./objects";
import type { PaymentDesk } from "./payments";

export interface Call {
  readonly id: string;
  readonly form: Record<string, FormValue>;
  /** A publishable key gives access only together with the object's client secret. */
  readonly secretKey: boolean;
}

export interface Resource {
  readonly method: "GET" | "POST";
  /** `:id` stands for an object's id. */
  readonly path: string;
  /** Open to `pk_test_` keys, as Stripe.js uses them. */
  readonly publishable?: true;
  readonly answer: (call: Call) => unknown;
}

const range = z.union([
  integer.transform((at) => ({ gte: at, lte: at })),
  z.strictObject({ gte: integer, gt: integer, lte: integer, lt: integer }).partial(),
]);
const listQuery = { limit: integer.optional(), starting_after: z.string().optional(), created: range.optional() };
const list = z.strictObject(listQuery);
const nothing = z.strictObject({});

const newIntent = z.strictObject({
  amount: integer,
  currency: z.string(),
  customer: z.string().optional(),
  allowed_payment_method_types: z.array(z.string()).optional(),
  metadata,
  description: z.string().optional(),
});
const confirmation = z.strictObject({
  payment_method: z.string().optional(),
  client_secret: z.string().optional(),
  return_url: z.string().optional(),
});
const look = z.strictObject({
  client_secret: z.string().optional(),
  expand: z.array(z.enum(["latest_charge"])).default([]),
});
const card = z.strictObject({ number: z.string(), exp_month: integer, exp_year: integer, cvc: z.string().optional() });

export function resourcesOf(objects: Objects, desk: PaymentDesk): Resource[] {
  return [
    ...customers(objects),
    ...intents(objects, desk),
    ...paymentMethods(objects),
    ...charges(objects, desk),
    ...disputes(objects, desk),
    { method: "GET", path: "/v1/balance", answer: () => balanceOf(objects) },
    ...events(objects),
  ];
}

function customers(objects: Objects): Resource[] {
  return [
    {
      method: "POST",
      path: "/v1/customers",
      answer: ({ form }) => {
        const wanted = parameters(z.strictObject({ email: z.string().optional(), metadata }), form);
        const customer: Customer = {
          id: newId("cus"),
          object: "customer",
          created: nowSeconds(),
          livemode: false,
          email: wanted.email ?? null,
          metadata: wanted.metadata,
        };
        objects.customers.set(customer.id, customer);
        return customer;
      },
    },
  ];
}

function intents(objects: Objects, desk: PaymentDesk): Resource[] {
  const opened = (call: Call): PaymentIntent => {
    const intent = desk.find(call.id);
    if (!call.secretKey && call.form.client_secret !== intent.client_secret) {
      throw call.form.client_secret === undefined ? badKey("pk_test_") : noSuch("payment_intent", call.id, "intent");
    }
    return intent;
  };
  const forCaller = (call: Call, intent: object): unknown =>
    call.secretKey ? intent : { ...intent, customer: undefined, metadata: undefined };
  return [
    { method: "POST", path: "/v1/payment_intents", answer: ({ form }) => desk.create(parameters(newIntent, form)) },
    {
      method: "GET",
      path: "/v1/payment_intents/:id",
      publishable: true,
      answer: (call) => {
        const intent = opened(call);
        const isExpanded =
          parameters(look, call.form).expand.length > 0 && call.secretKey && intent.latest_charge !== null;
        return forCaller(call, isExpanded ? withCharge(intent, objects) : intent);
      },
    },
    {
      method: "GET",
      path: "/v1/payment_intents",
      answer: ({ form }) => listOf(objects.intents.values(), parameters(list, form), "/v1/payment_intents"),
    },
    {
      method: "POST",
      path: "/v1/payment_intents/:id/confirm",
      publishable: true,
      answer: (call) => forCaller(call, desk.confirm(opened(call), parameters(confirmation, call.form).payment_method)),
    },
    {
      method: "POST",
      path: "/v1/payment_intents/:id/authenticate",
      publishable: true,
      answer: (call) => {
        const { outcome } = parameters(
          z.strictObject({ client_secret: z.string().optional(), outcome: z.enum(["pass", "fail"]) }),
          call.form,
        );
        return forCaller(call, desk.authenticate(opened(call), outcome === "pass"));
      },
    },
    {
      method: "POST",
      path: "/v1/payment_intents/:id/cancel",
      answer: ({ id, form }) => desk.cancel((parameters(nothing, form), desk.find(id))),
    },
  ];
}

const withCharge = (intent: PaymentIntent, objects: Objects): object => ({
  ...intent,
  latest_charge: objects.charges.get(intent.latest_charge ?? ""),
});

function paymentMethods(objects: Objects): Resource[] {
  return [
    {
      method: "POST",
      path: "/v1/payment_methods",
      publishable: true,
      answer: ({ form }) => {
        const wanted = parameters(z.strictObject({ type: z.literal("card"), card }), form);
        const outcome = outcomeOfNumber(wanted.card.number);
        const last4 = wanted.card.number.slice(-4);
        const object: PaymentMethod = {
          id: newId("pm"),
          object: "payment_method",
          created: nowSeconds(),
          livemode: false,
          type: "card",
          card: { last4 },
        };
        objects.paymentMethods.set(object.id, { object, outcome });
        return object;
      },
    },
  ];
}

function charges(objects: Objects, desk: PaymentDesk): Resource[] {
  const chargeOf = (wanted: { charge?: string | undefined; payment_intent?: string | undefined }): string => {
    const id =
      wanted.charge ??
      (wanted.payment_intent === undefined ? undefined : desk.find(wanted.payment_intent).latest_charge);
    if (id === undefined || id === null)
      throw invalidRequest(
        "One of the following params should be provided for this request: payment_intent or charge.",
      );
    return id;
  };
  const newRefund = z
    .strictObject({ charge: z.string(), payment_intent: z.string(), amount: integer, reason: z.string() })
    .partial();
  return [
    {
      method: "GET",
      path: "/v1/charges",
      answer: ({ form }) => listOf(objects.charges.values(), parameters(list, form), "/v1/charges"),
    },
    { method: "GET", path: "/v1/charges/:id", answer: ({ id }) => found(objects.charges, id, "charge") },
    {
      method: "POST",
      path: "/v1/refunds",
      answer: ({ form }) => {
        const wanted = parameters(newRefund, form);
        return desk.refund(found(objects.charges, chargeOf(wanted), "charge"), wanted.amount);
      },
    },
  ];
}

/** As in Stripe's test mode: `winning_evidence` wins, `losing_evidence` loses; closing concedes. */
function disputes(objects: Objects, desk: PaymentDesk): Resource[] {
  const evidence = z.strictObject({ evidence: z.strictObject({ uncategorized_text: z.string() }) });
  return [
    {
      method: "GET",
      path: "/v1/disputes",
      answer: ({ form }) => {
        const { payment_intent: intent, ...query } = parameters(
          z.strictObject({ ...listQuery, payment_intent: z.string().optional() }),
          form,
        );
        const ofIntent = [...objects.disputes.values()].filter(
          (dispute) => intent === undefined || dispute.payment_intent === intent,
        );
        return listOf(ofIntent, query, "/v1/disputes");
      },
    },
    {
      method: "POST",
      path: "/v1/disputes/:id",
      answer: ({ id, form }) => {
        const text = parameters(evidence, form).evidence.uncategorized_text;
        const dispute = found(objects.disputes, id, "dispute");
        return text === "winning_evidence" || text === "losing_evidence"
          ? desk.endDispute(dispute, text === "winning_evidence")
          : dispute;
      },
    },
    {
      method: "POST",
      path: "/v1/disputes/:id/close",
      answer: ({ id }) => desk.endDispute(found(objects.disputes, id, "dispute"), false),
    },
  ];
}

function events(objects: Objects): Resource[] {
  const query = z.strictObject({ ...listQuery, types: z.array(z.string()).optional() });
  return [
    {
      method: "GET",
      path: "/v1/events",
      answer: ({ form }) => {
        const { types, ...rest } = parameters(query, form);
        const matching = [...objects.events.values()].filter(({ type }) => types?.includes(type) ?? true);
        return listOf(matching, rest, "/v1/events");
      },
    },
  ];
}

/** The double makes no payouts and takes no fees: the balance is payments less refunds and disputes. */
function balanceOf({ charges: all, disputes: disputed }: Objects): unknown {
  const paid = [...all.values()].reduce((sum, { amount, amount_refunded: refunded }) => sum + amount - refunded, 0);
  const withdrawn = [...disputed.values()].filter(({ status }) => !status.startsWith("warning_") && status !== "won");
  const amount = paid - withdrawn.reduce((sum, dispute) => sum + dispute.amount, 0);
  return {
    object: "balance",
    livemode: false,
    available: [{ amount: 0, currency: "usd" }],
    pending: [{ amount, currency: "usd" }],
  };
}

function found<T>(objects: ReadonlyMap<string, T>, id: string, what: string): T {
  const object = objects.get(id);
  if (object === undefined) throw noSuch(what, id);
  return object;
}
