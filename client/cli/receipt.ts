/**
 * `keywright receipt`: follows a receipt from its signature over the statement key and the quote to the image. With
 * `--quote` nothing is asked of the service.
 */
import type { Command } from "commander";
import { WrongUse } from "../errors";
import type * as Verify from "../verify";
import type { Report } from "../verify/types";
import { serviceOf } from "./config";
import type { Context } from "./context";
import { Ended } from "./failure";
import { withProgress } from "./io";
import { readText } from "./run";
import { jsonText, oneLine } from "./text";
import { parse, textOf, verifierSettings, withVerifierOptions, type VerifierOptions } from "./verify";
import { defined } from "../../protocol/defined";
import { parseJson } from "../../protocol/json";

interface Options extends VerifierOptions {
  readonly quote?: string;
  readonly params?: string;
}

export function addReceipt(program: Command, context: Context): void {
  withVerifierOptions(program.command("receipt"))
    .description("check a receipt of a run down to the TEE's quote; exit codes as of verify, 1 for a wrong receipt")
    .argument("<file>", "the receipt, or the answer of run_action or the firing that contains it")
    .option("--quote <file>", "evidence kept by `keywright verify --save`, instead of asking the service")
    .option("--params <file>", "the run's js_params, to compare with the receipt")
    .action((file: string, options: Options) => check(context, file, options));
}

async function check(context: Context, file: string, options: Options): Promise<void> {
  const { recordService, verifyEvidence, verifyReceipt } = require("../verify") as typeof Verify;
  const held = heldIn(readText(context, file));
  const params = options.params === undefined ? undefined : parse(options.params, readText(context, options.params));
  const settings = verifierSettings(context, options);
  const { url } = serviceOf(context.io.env, context.options());
  const { report, config } =
    options.quote === undefined
      ? await withProgress(context.io, `asking ${url}`, recordService(url, settings))
      : await verifyEvidence(parse(options.quote, readText(context, options.quote)), settings);
  const result = await claimsOf(async () => {
    if (config === undefined) throw new Error("no genuine quote covers a config document to check the receipt with");
    const claims = await verifyReceipt(held.receipt, config, {
      params,
      ...defined({ response: held.answer?.response }),
    });
    requireSameRun(claims, held.answer);
    return claims;
  });
  if (context.options().json === true) context.print({ ...result, report });
  else context.io.out(`${textOf(report)}\n${receiptLines(result, report)}`);
  const exitCode = result.claims === undefined && !isOpen(config, report) ? 1 : report.exitCode;
  if (exitCode !== 0) throw new Ended(exitCode);
}

/** What vouches for receipts could not be checked, for example for want of collateral; nothing is wrong with them. */
const isOpen = (config: unknown, { outcome }: Report): boolean => config === undefined && outcome === "incomplete";

/** What an answer of `run_action` says beside its receipt; only a refusal has a code of its own. */
interface Answered {
  readonly code?: unknown;
  readonly response?: unknown;
  readonly has_error?: unknown;
  readonly error?: { readonly code?: unknown };
  readonly usage?: { readonly duration_ms?: unknown; readonly cost_cents?: unknown };
}

/** What a trigger's firing says of its run. */
interface Firing {
  readonly id?: unknown;
  readonly trigger_id?: unknown;
  readonly cause?: unknown;
  readonly outcome?: unknown;
  readonly duration_ms?: unknown;
  readonly cost_cents?: unknown;
}

/** The receipt itself, or an answer with a member `receipt`. */
function heldIn(text: string): { readonly receipt: string; readonly answer?: Answered & Firing } {
  const value = parseJson(text) as (Answered & Firing & { receipt?: unknown }) | null | undefined;
  if (Array.isArray(value)) throw new WrongUse("The file holds a list: give one of its items.");
  return typeof value?.receipt === "string" ? { receipt: value.receipt, answer: value } : { receipt: text.trim() };
}

/** What a repeated request is refused with, beside the receipt of the run that it began. */
const ALREADY_RAN = "already_ran";

/** Everything in the answer that the receipt states; it says nothing of logs, signatures and the words of errors. */
function requireSameRun(claims: Verify.ReceiptClaims, answer: (Answered & Firing) | undefined): void {
  if (answer === undefined) return;
  const stated = answer.trigger_id === undefined ? statedOfRun(claims, answer) : statedOfFiring(claims, answer);
  const wrong = Object.entries(stated).find(([, holds]) => !holds);
  if (wrong !== undefined) throw new Error(`the ${wrong[0]} given is not the one of the receipt`);
}

function statedOfFiring(claims: Verify.ReceiptClaims, answer: Firing): Record<string, boolean> {
  const { id, trigger_id, cause, outcome, duration_ms, cost_cents } = answer;
  // A refusal has neither.
  const hasRun = claims.response_sha256 !== undefined;
  return {
    id: id === claims.request_id,
    trigger_id: trigger_id === claims.trigger?.id,
    cause: cause === claims.trigger?.cause,
    outcome: outcome === claims.outcome,
    duration_ms: !hasRun || duration_ms === claims.duration_ms,
    cost_cents: !hasRun || cost_cents === claims.price_cents,
  };
}

function statedOfRun(claims: Verify.ReceiptClaims, answer: Answered): Record<string, boolean> {
  const { code, response, has_error, error, usage } = answer;
  const isSameUsage = usage?.cost_cents === claims.price_cents && usage.duration_ms === claims.duration_ms;
  return code !== undefined
    ? {
        code: code === claims.outcome || code === ALREADY_RAN,
        response: response === undefined,
        has_error: has_error === undefined,
        error: error === undefined,
        usage: usage === undefined || isSameUsage,
      }
    : {
        response: response !== undefined,
        has_error: has_error === (claims.outcome !== "succeeded"),
        "error.code": (error?.code ?? "succeeded") === claims.outcome,
        usage: isSameUsage,
      };
}

type Result =
  | { readonly claims: Verify.ReceiptClaims; readonly wrong?: never }
  | { readonly wrong: string; readonly claims?: never };

async function claimsOf(check: () => Promise<Verify.ReceiptClaims>): Promise<Result> {
  try {
    return { claims: await check() };
  } catch (error) {
    return { wrong: (error as Error).message };
  }
}

function receiptLines({ claims, wrong }: Result, { outcome }: Report): string {
  if (claims === undefined) return `RECEIPT REFUSED: ${oneLine(wrong)}.\n`;
  const lines = Object.entries(claims).map(([name, value]) => `  ${name}: ${jsonText(value)}`);
  const head = `RECEIPT: signed by the statement key of the service above, whose verdict (${outcome}) applies to it.`;
  return `${[head, ...lines].join("\n")}\n`;
}
