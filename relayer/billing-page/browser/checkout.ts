/** The checkout page: sign in with a key, see the credit, buy some, look at the history. */
import { BillingApi, type Entry } from "./api";
import { attemptFor, forgetAttempt, openAttempt, remember, type Attempt } from "./attempt";
import { openCardFields, type CardFields } from "./cards";
import { hasWallet, keyCredentials, walletCredentials, type Credentials } from "./credentials";
import { element } from "./elements";
import { Failure } from "./failures";

const PAGE_SIZE = 20;
const CENTS_MIN = 500;

interface Session {
  readonly api: BillingApi;
  readonly cards: CardFields;
  page: number;
}

let session: Session | undefined;
let cards: CardFields | undefined;

element("sign-in").onsubmit = act(signInWithKey);
element("wallet-sign-in").onclick = act(async () => signIn(await walletCredentials()));
element("wallet-sign-in").hidden = !hasWallet();
element("top-up").onsubmit = act(topUp);
element("newer").onclick = act(() => turnPage(-1));
element("older").onclick = act(() => turnPage(1));
element("sign-out").onclick = act(signOut);

/** Runs what a button asks for, one thing at a time, and shows how it ended. */
function act(work: () => Promise<string | undefined>): (event: Event) => void {
  return (event) => {
    event.preventDefault();
    void show(work);
  };
}

async function show(work: () => Promise<string | undefined>): Promise<void> {
  setBusy(true);
  say("", "");
  try {
    say((await work()) ?? "", "");
  } catch (error) {
    say("", error instanceof Error ? error.message : String(error));
  } finally {
    setBusy(false);
  }
}

function say(notice: string, failure: string): void {
  element("notice").textContent = notice;
  element("failure").textContent = failure;
}

function setBusy(busy: boolean): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>("main form button, main section button")) button.disabled = busy;
}

async function signInWithKey(): Promise<string | undefined> {
  const input = element<HTMLInputElement>("api-key");
  const resumed = await signIn(keyCredentials(input.value.trim()));
  input.value = "";
  return resumed;
}

async function signIn(credentials: Credentials): Promise<string | undefined> {
  const api = new BillingApi(credentials);
  await showBalance(api);
  cards ??= openCardFields(await api.publishableKey());
  session = { api, cards, page: 0 };
  element("sign-in").hidden = true;
  element("account").hidden = false;
  const resumed = await resume(session);
  await refresh(session);
  return resumed;
}

async function signOut(): Promise<undefined> {
  session = undefined;
  element("history").replaceChildren();
  element("account").hidden = true;
  element("sign-in").hidden = false;
}

/** A payment that had succeeded when the page went away is credited now; one that had not can be gone on with. */
async function resume({ api }: Session): Promise<string | undefined> {
  const open = openAttempt();
  if (open?.paymentIntentId === undefined) return undefined;
  try {
    await api.confirm(open.paymentIntentId);
  } catch (error) {
    return notFinished(open, error);
  }
  forgetAttempt();
  return `Your payment of ${dollars(open.amountCents)} has been credited.`;
}

function notFinished(open: Attempt, error: unknown): string | undefined {
  const code = error instanceof Failure ? error.code : "";
  if (code === "payment_not_succeeded") return `A payment of ${dollars(open.amountCents)} was begun and not finished. Pay the same amount to go on with it.`;
  if (code === "payment_intent_not_found") forgetAttempt();
  return undefined;
}

async function topUp(): Promise<string | undefined> {
  if (session === undefined) return undefined;
  const { api, cards: fields } = session;
  const attempt = attemptFor(chosenCents());
  const intent = await api.createIntent(attempt.amountCents, attempt.key);
  remember({ ...attempt, paymentIntentId: intent.payment_intent_id });
  await fields.pay(intent.client_secret);
  await credit(api, intent.payment_intent_id);
  forgetAttempt();
  await refresh(session);
  return `Thank you: ${dollars(attempt.amountCents)} has been credited.`;
}

/** The card is charged by now, so a failure here must not sound like one of the payment. */
async function credit(api: BillingApi, paymentIntentId: string): Promise<void> {
  try {
    await api.confirm(paymentIntentId);
  } catch (error) {
    const why = error instanceof Error ? error.message : "";
    throw new Failure(`Your card was charged, and the credit will arrive by itself within minutes. You need not pay again. (${why})`, "not_confirmed");
  }
}

function chosenCents(): number {
  const chosen = document.querySelector<HTMLInputElement>("input[name=amount]:checked")?.value;
  if (chosen !== "other") return Number(chosen);
  const typed = element<HTMLInputElement>("other-amount").value.trim();
  const [, whole = "", part = ""] = /^(\d{1,6})(?:[.,](\d{2}))?$/.exec(typed) ?? [];
  const cents = Number(whole) * 100 + Number(part);
  if (whole === "" || cents < CENTS_MIN) throw new Failure("Enter an amount in dollars: 5.00 or more.", "amount");
  return cents;
}

async function turnPage(by: number): Promise<undefined> {
  if (session === undefined) return;
  session.page = Math.max(0, session.page + by);
  await showHistory(session);
}

async function refresh(current: Session): Promise<void> {
  current.page = 0;
  await Promise.all([showBalance(current.api), showHistory(current)]);
}

async function showBalance(api: BillingApi): Promise<void> {
  const { balance_display: display, reserved_cents: reserved } = await api.balance();
  element("balance").textContent = display;
  element("reserved").textContent = reserved > 0 ? `(${dollars(reserved)} held for what is running)` : "";
}

async function showHistory({ api, page }: Session): Promise<void> {
  const entries = await api.history(page, PAGE_SIZE).catch(noHistory);
  element("history").replaceChildren(...entries.map(rowOf));
  element<HTMLButtonElement>("newer").hidden = page === 0;
  element<HTMLButtonElement>("older").hidden = entries.length < PAGE_SIZE;
}

/** A usage key may pay, and not look at what others have spent. */
function noHistory(error: unknown): Entry[] {
  if (!(error instanceof Failure) || error.code !== "owner_only") throw error;
  element("history-note").textContent = "The history is shown to the account's owner only.";
  return [];
}

function rowOf(entry: Entry): HTMLTableRowElement {
  const row = document.createElement("tr");
  row.append(
    cell(new Date(entry.created_at).toLocaleString()),
    cell(entry.kind.replaceAll("_", " ")),
    cell(dollars(entry.amount_cents), "number"),
    cell(entry.reference, "reference"),
  );
  return row;
}

function cell(text: string, className = ""): HTMLTableCellElement {
  const made = document.createElement("td");
  made.textContent = text;
  made.className = className;
  return made;
}

function dollars(cents: number): string {
  const absolute = Math.abs(cents);
  return `${cents < 0 ? "-" : ""}$${Math.floor(absolute / 100)}.${String(absolute % 100).padStart(2, "0")}`;
}
