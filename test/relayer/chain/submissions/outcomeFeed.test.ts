import { expect } from "chai";
import { OutcomeFeed } from "../../../../relayer/chain/submissions/outcomeFeed";
import type { SubmissionRow } from "../../../../relayer/chain/submissions/rows";

describe("the feed of outcomes", () => {
  it("notifies every listener, in order", () => {
    const feed = new OutcomeFeed();
    const heard: string[] = [];
    const row = { id: "one" } as SubmissionRow;
    feed.publish(row);
    feed.subscribe(({ id }) => heard.push(`first ${id}`));
    feed.subscribe(({ id }) => heard.push(`second ${id}`));
    feed.publish(row);
    expect(heard).to.deep.equal(["first one", "second one"]);
  });
});
