/** Names and descriptions over HTTP: the lists show what was written. */
import { expect } from "chai";
import { NO_PERMISSIONS } from "../../support/http";
import { useApiAccount } from "../../support/stack";

interface Named {
  readonly name: string;
  readonly description: string;
}

const CID = "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX";

describe("names and descriptions", () => {
  const account = useApiAccount();

  const only = async (path: string): Promise<Named & Record<string, unknown>> => {
    const listed = (await account().api.get(path)).body as (Named & Record<string, unknown>)[];
    expect(listed).to.have.length(1);
    return listed[0] as Named & Record<string, unknown>;
  };
  const named = async (path: string): Promise<[string, string]> => {
    const { name, description } = await only(path);
    return [name, description];
  };

  it("of an action: added by its CID, changed by its hash", async () => {
    await account().api.must("/add_action", { action_ipfs_cid: CID, name: "sign", description: "first" });
    const { hashed_cid: hash } = await only("/list_actions");
    expect(await named("/list_actions")).to.deep.equal(["sign", "first"]);
    await account().api.must("/update_action_metadata", {
      hashed_cid: hash,
      name: "sign anything: 签名",
      description: "",
    });
    expect(await named("/list_actions")).to.deep.equal(["sign anything: 签名", ""]);
    expect((await only("/list_actions"))["action_ipfs_cid"]).to.equal(CID);
  });

  it("of a usage key: the metadata route changes them and nothing else", async () => {
    const group = String(
      (await account().api.must("/add_group", { group_name: "g", group_description: "" }))["group_id"],
    );
    const rights = {
      ...NO_PERMISSIONS,
      can_create_pkps: true,
      execute_in_groups: [group],
      expiration: 4_000_000_000,
      balance: 77,
    };
    const { usage_api_key: key } = await account().api.must("/add_usage_api_key", {
      ...rights,
      name: "bot",
      description: "old",
    });
    const before = await only("/list_api_keys");
    await account().api.must("/update_usage_api_key_metadata", {
      usage_api_key: key,
      name: "renamed",
      description: "new",
    });
    const after = await only("/list_api_keys");
    expect(after).to.deep.equal({ ...before, name: "renamed", description: "new" });
    expect(JSON.stringify(after)).not.to.include(String(key));
  });

  it("of a PKP and of a group", async () => {
    await account().api.must("/create_wallet", { name: "treasury", description: "cold" });
    expect(await named("/list_wallets")).to.deep.equal(["treasury", "cold"]);
    await account().api.must("/update_group", { group_id: "1", name: "payouts", description: "weekly" });
    expect(await named("/list_groups")).to.deep.equal(["payouts", "weekly"]);
  });
});
