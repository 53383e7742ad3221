/** Lists beyond their first page: every item once, in order, with the total; nothing past the end. */
import { expect } from "chai";
import { NO_PERMISSIONS, newApiAccount, type ApiAccount } from "../../support/http";
import { useStack } from "../../support/stack";

/** More keys than one page of the contract (200). */
const KEYS = 203;
const ITEMS = 7;

describe("pages of lists", function () {
  this.timeout(120_000);
  const stack = useStack();
  let account: ApiAccount;

  before(async () => {
    account = await newApiAccount(stack().baseUrl);
    const wallets = Array.from({ length: ITEMS }, (_, i) => account.api.must("/create_wallet", { name: `w${i}` }));
    const made = await Promise.all(wallets);
    const hashes = Array.from({ length: ITEMS }, (_, i) => `0x${(i + 1).toString(16).padStart(64, "0")}`);
    const group = {
      group_name: "g",
      group_description: "",
      pkp_ids_permitted: made.map((wallet) => wallet["wallet_address"]),
      cid_hashes_permitted: hashes,
    };
    await account.api.must("/add_group", group);
    await makeKeys();
  });

  /** As many concurrent writes as an account's queue accepts. */
  async function makeKeys(): Promise<void> {
    let next = 0;
    const maker = async (): Promise<void> => {
      while (next < KEYS) await account.api.must("/add_usage_api_key", { ...NO_PERMISSIONS, name: `k${next++}` });
    };
    await Promise.all(Array.from({ length: 8 }, maker));
  }

  /** The ids of every page, and X-Total-Count. */
  async function pages(path: string, size: number): Promise<{ ids: string[]; lengths: number[]; totals: Set<string> }> {
    const found = { ids: [] as string[], lengths: [] as number[], totals: new Set<string>() };
    for (let page = 0; page < 40; page++) {
      const answer = await account.api.get(
        `${path}${path.includes("?") ? "&" : "?"}page_number=${page}&page_size=${size}`,
      );
      expect(answer.status, answer.text).to.equal(200);
      const items = answer.body as { id: string }[];
      found.totals.add(String(answer.headers["x-total-count"]));
      if (items.length === 0) return found;
      found.ids.push(...items.map(({ id }) => id));
      found.lengths.push(items.length);
    }
    throw new Error(`${path} never ended`);
  }

  for (const path of [
    "/list_wallets",
    "/list_wallets_in_group?group_id=1",
    "/list_actions",
    "/list_actions?group_id=1",
  ]) {
    it(`${path}: three pages of three equal one page of all`, async () => {
      const [whole, parts] = [await pages(path, 1_000), await pages(path, 3)];
      expect(parts.lengths).to.deep.equal([3, 3, 1]);
      expect(parts.ids).to.deep.equal(whole.ids);
      expect(new Set(whole.ids).size).to.equal(ITEMS);
      expect([...parts.totals]).to.deep.equal([String(ITEMS)]);
    });
  }

  for (const size of [1_000, 200, 90]) {
    it(`/list_api_keys: ${KEYS} keys in pages of ${size}, each once`, async () => {
      const { ids, lengths, totals } = await pages("/list_api_keys", size);
      expect(new Set(ids).size).to.equal(KEYS);
      expect(lengths.slice(0, -1).every((length) => length === size)).to.equal(true);
      expect([...totals]).to.deep.equal([String(KEYS)]);
    });
  }
});
