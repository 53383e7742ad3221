/**
 * Every operation of the route table as a typed method. The types come from the schemas themselves; run time needs only
 * the slim table of routes.ts, so no schema library reaches a browser.
 */
import { ClientError, refuse } from "./errors";
import { CLIENT_ROUTES, type ClientRoute } from "./routes";
import type { CallOptions, HttpCall, Transport } from "./transport";
import type { Answer, Input, Item } from "./wire";

export type OperationName = keyof typeof CLIENT_ROUTES;

/** Operations by name, for whoever is logged in. */
export interface Connection {
  /** `made` is told what is made before it is done, with its secret: a later step may fail and yet take effect. */
  call(name: OperationName, input: unknown, made?: Made): Promise<unknown>;
  close(): void;
}

export type Made = (answer: Readonly<Record<string, unknown>>) => void;

/** A page of a list, and how many items there are in all. */
export interface Page<One> {
  readonly items: readonly One[];
  readonly total: number;
}

/**
 * Members missing only from replays. A replay without its secret throws `secret_lost`, so the results always have them.
 */
interface Secrets {
  addUsageApiKey: "usage_api_key";
  addUsageApiKeyWithSignature: "usage_api_key";
  createPaymentIntent: "client_secret";
}
type Shown<Name extends OperationName> = Name extends keyof Secrets
  ? Omit<Answer<Name>, "secret_returned_before"> & { readonly [K in Secrets[Name]]: string }
  : Answer<Name>;

/** The answer's body; lists come as a page. */
export type Result<Name extends OperationName> = (typeof CLIENT_ROUTES)[Name] extends { readonly paged: true }
  ? Page<Item<Name>>
  : Shown<Name>;

type Operation<Name extends OperationName> =
  Record<never, never> extends Input<Name>
    ? (input?: Input<Name>, options?: CallOptions) => Promise<Result<Name>>
    : (input: Input<Name>, options?: CallOptions) => Promise<Result<Name>>;

export type Operations<Name extends OperationName = OperationName> = { readonly [K in Name]: Operation<K> };

/** Authentication headers, made for each call. */
export type Credential = () => Promise<Readonly<Record<string, string>>> | Readonly<Record<string, string>>;

export function operations<Name extends OperationName>(
  names: readonly Name[],
  transport: Transport,
  credential: Credential,
): Operations<Name> {
  const methods = names.map((name) => [name, operation(CLIENT_ROUTES[name], transport, credential)]);
  return Object.fromEntries(methods) as Operations<Name>;
}

export const ALL_OPERATIONS = Object.keys(CLIENT_ROUTES) as OperationName[];

function operation(route: ClientRoute, transport: Transport, credential: Credential) {
  return async (input: unknown = {}, options: CallOptions = {}): Promise<unknown> => {
    const headers = await credential();
    const { body, headers: answered } = await transport.call({ ...httpCall(route, input), headers }, options);
    return route.paged === true ? { items: body, total: totalOf(answered) } : body;
  };
}

function totalOf(headers: Headers): number {
  const total = headers.get("x-total-count");
  if (total === null)
    throw new ClientError("unexpected_answer", "The list came without X-Total-Count: an intermediary removes headers.");
  return Number(total);
}

function httpCall(route: ClientRoute, input: unknown): HttpCall {
  const { method, effect: mutates = false } = route;
  if (typeof input === "string") return { method, path: route.path, body: input, mutates };
  const fields = input as Record<string, string>;
  const named = new Set<string>();
  const path = route.path.replace(/:([a-z]+)/g, (_, name: string) => {
    named.add(name);
    return pathSegment(name, fields[name]);
  });
  const rest = Object.fromEntries(Object.entries(fields).filter(([name]) => !named.has(name)));
  if (route.text === true) return { method, path, query: rest, text: true };
  return method === "GET" ? { method, path, query: rest, mutates } : { method, path, body: rest, mutates };
}

/** A value as one segment of a path: rejects "." and "..", which would change the path. */
function pathSegment(name: string, value: unknown): string {
  const text = String(value ?? "");
  return text === "" || text === "." || text === ".."
    ? refuse(`${name} is missing, or cannot be part of a path.`)
    : encodeURIComponent(text);
}
