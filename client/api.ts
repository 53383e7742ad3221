/**
 * The client of an account in API mode (and of a usage key in either mode): every operation of the HTTP interface.
 * Source: docs/conformance.md §4, §5.
 */
import { ClientError } from "./errors";
import { isKeyText } from "./keyText";
import { ALL_OPERATIONS, operations, type Credential, type Operations, type Result } from "./operations";
import { createTransport, type CallOptions, type Transport, type TransportOptions } from "./transport";
import type { Input } from "./wire";

export interface ClientOptions extends TransportOptions {
  /** Account key or usage key. Without one only the open operations answer. */
  readonly apiKey?: string;
  /**
   * For owners who sign in with an identity provider: the ID token, or a function that gets a fresh one for each call.
   */
  readonly identityToken?: string | (() => string | Promise<string>);
}

export type Client = Operations;

/**
 * @throws ClientError `invalid_argument` when a key or the address of the service cannot be one; the key is never part
 * of the message.
 */
export function createClient(options: ClientOptions): Client {
  return clientOver(createTransport(options), credentialOf(options));
}

export function clientOver(transport: Transport, credential: Credential): Client {
  const all = operations(ALL_OPERATIONS, transport, credential);
  return { ...all, runAction: (input = {}, options = {}) => all.runAction(input, withRunTimeout(input, options)) };
}

function credentialOf({ apiKey, identityToken }: ClientOptions): Credential {
  if (apiKey !== undefined && identityToken !== undefined)
    throw new ClientError("invalid_argument", "Give apiKey or identityToken, not both.");
  if (apiKey !== undefined) {
    if (!isKeyText(apiKey))
      throw new ClientError("invalid_argument", "apiKey must be 44 characters of base64, as the service gave it.");
    return () => ({ "x-api-key": apiKey });
  }
  if (identityToken === undefined) return () => ({});
  return async () => ({
    "x-identity-token": typeof identityToken === "string" ? identityToken : await identityToken(),
  });
}

const RUN_GRACE_MS = 30_000;

/** Waits at least as long as the run's own time limit. */
function withRunTimeout(input: Input<"runAction">, options: CallOptions): CallOptions {
  if (options.timeoutMs !== undefined || input.timeout_ms === undefined) return options;
  return { ...options, timeoutMs: Number(input.timeout_ms) + RUN_GRACE_MS };
}

export type NewAccount = Result<"newAccount"> & { readonly api_key: string };

/** Makes an API-mode account and a client that holds its key. `account.api_key` is shown only once: store it. */
export async function createAccount(
  options: TransportOptions,
  account: Input<"newAccount">,
  callOptions?: CallOptions,
): Promise<{ account: NewAccount; client: Client }> {
  const transport = createTransport(options);
  const answer = await clientOver(transport, () => ({})).newAccount(account, callOptions);
  const { api_key } = answer;
  if (api_key === undefined)
    throw new ClientError("unexpected_answer", "The service created an account but returned no key.");
  return { account: { ...answer, api_key }, client: clientOver(transport, () => ({ "x-api-key": api_key })) };
}

/** All items of a list, page by page: `for await (const group of everyItem(client.listGroups))`. */
export async function* everyItem<Query extends object, Item>(
  list: (query: Query & { page_number: number; page_size: number }) => Promise<{ readonly items: readonly Item[] }>,
  query: Query = {} as Query,
  pageSize = 200,
): AsyncGenerator<Item, void, undefined> {
  for (let page = 0; ; page += 1) {
    const { items } = await list({ ...query, page_number: page, page_size: pageSize });
    yield* items;
    if (items.length < pageSize) return;
  }
}
