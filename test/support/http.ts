/** Plain HTTP against a running relayer, without SDK or schemas. */
import { request, type Dispatcher } from "undici";
import { defined } from "../../protocol/defined";

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** The parsed body; undefined when it is not JSON. */
  readonly body: unknown;
}

export interface HttpRequest {
  readonly method?: Dispatcher.HttpMethod | "PROPFIND";
  readonly headers?: Readonly<Record<string, string>>;
  /** A value is sent as JSON; a Buffer as it is. */
  readonly body?: unknown;
  readonly key?: string | undefined;
}

export async function send(
  url: string,
  { method = "GET", headers = {}, body, key }: HttpRequest = {},
): Promise<HttpAnswer> {
  const bytes = body === undefined ? undefined : Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
  const response = await request(url, {
    method: method as Dispatcher.HttpMethod,
    headers: {
      ...(bytes === undefined ? {} : { "content-type": "application/json" }),
      ...defined({ "x-api-key": key }),
      ...headers,
    },
    ...defined({ body: bytes }),
  });
  const text = await response.body.text();
  return { status: response.statusCode, headers: response.headers, text, body: parse(text) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The members of a JSON object; an empty one for anything else. */
export const members = (answer: HttpAnswer): Record<string, unknown> =>
  typeof answer.body === "object" && answer.body !== null ? (answer.body as Record<string, unknown>) : {};

/** `code` of a problem; undefined for any other answer. */
export const codeOf = (answer: HttpAnswer): unknown => members(answer)["code"];

/** Calls of the API below /core/v1, with one key. */
export class Api {
  constructor(
    readonly baseUrl: string,
    readonly key?: string,
  ) {}

  get(path: string, options: HttpRequest = {}): Promise<HttpAnswer> {
    return send(`${this.baseUrl}/core/v1${path}`, { key: this.key, ...options });
  }

  post(path: string, body: unknown, options: HttpRequest = {}): Promise<HttpAnswer> {
    return send(`${this.baseUrl}/core/v1${path}`, { method: "POST", key: this.key, body, ...options });
  }

  /** As post, for a step that only prepares a test: anything but 200 is an error of the test. */
  async must(path: string, body: unknown): Promise<Record<string, unknown>> {
    const answer = await this.post(path, body);
    if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}: ${answer.text}`);
    return members(answer);
  }

  with(key: string | undefined): Api {
    return new Api(this.baseUrl, key);
  }
}

export interface ApiAccount {
  readonly api: Api;
  readonly key: string;
  readonly id: string;
  readonly wallet: string;
}

export async function newApiAccount(baseUrl: string): Promise<ApiAccount> {
  const made = await new Api(baseUrl).must("/new_account", { account_name: "Acme", account_description: "" });
  const key = String(made["api_key"]);
  return { api: new Api(baseUrl, key), key, id: String(made["api_key_hash"]), wallet: String(made["wallet_address"]) };
}

export const NO_PERMISSIONS = {
  name: "key",
  description: "",
  can_create_groups: false,
  can_delete_groups: false,
  can_create_pkps: false,
  manage_ipfs_ids_in_groups: [] as (number | string)[],
  add_pkp_to_groups: [] as (number | string)[],
  remove_pkp_from_groups: [] as (number | string)[],
  execute_in_groups: [] as (number | string)[],
};
