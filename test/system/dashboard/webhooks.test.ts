/** The dashboard's Webhooks screen: a receiver is added, tested, and sent again what it refused. */
import { expect } from "chai";
import { useBrowser } from "../../support/browser";
import { Dashboard } from "../../support/dashboard";
import { newApiAccount, NO_PERMISSIONS, type ApiAccount } from "../../support/http";
import { useStack } from "../../support/stack";
import { startReceiver, type Receiver } from "../../support/webhookReceiver";

describe("the dashboard's webhooks", function () {
  this.timeout(60_000);
  const stack = useStack();
  const browser = useBrowser();
  let dashboard: Dashboard;
  let account: ApiAccount;
  let receiver: Receiver;

  beforeEach(async () => {
    account = await newApiAccount(stack().baseUrl);
    receiver = await startReceiver();
    dashboard = await Dashboard.open(browser(), stack().baseUrl);
  });
  afterEach(async () => {
    await dashboard.close();
    await receiver.stop();
  });

  it("adds one, shows each delivery with its answer, replays and deletes", async () => {
    receiver.answer((response) => response.writeHead(500).end("no room left"));
    await dashboard.signIn(account.key);
    await dashboard.go("Webhooks");
    await dashboard.says("No webhooks yet");
    await dashboard.press("Add webhook");
    await dashboard.fill("URL", "http://10.0.0.1/hook");
    await dashboard.confirm("Add webhook");
    await dashboard.says(/not a public address/);
    await dashboard.fill("URL", receiver.url);
    await dashboard.fill("Messages", "webhook.*, run.*");
    await dashboard.confirm("Add webhook");
    await dashboard.says(`Deliveries to ${receiver.url}`);
    await dashboard.press("Send a test");
    await dashboard.says("500");
    await dashboard.press("Details");
    await dashboard.says("no room left");
    await dashboard.press("Close");
    receiver.answer((response) => response.writeHead(204).end());
    await dashboard.choose(dashboard.row(/webhook\.test/), "Replay");
    await dashboard.says("delivered");
    expect(new Set(receiver.received.map(({ id }) => id)).size).to.equal(1);
    await dashboard.choose(dashboard.row(new RegExp(receiver.url)), "Turn off");
    await dashboard.says("switched off by the owner");
    await dashboard.choose(dashboard.row(new RegExp(receiver.url)), "Delete");
    await dashboard.confirm("Delete webhook");
    await dashboard.says("No webhooks yet");
  });

  it("adds one although the answers are lost and the button is pressed again", async () => {
    await dashboard.signIn(account.key);
    await dashboard.go("Webhooks");
    await dashboard.says("No webhooks yet");
    await dashboard.loseAnswers("**/webhooks");
    await dashboard.press("Add webhook");
    await dashboard.fill("URL", receiver.url);
    await dashboard.confirm("Add webhook");
    await dashboard.dialog().getByText("The service could not be reached").waitFor();
    await dashboard.confirm("Add webhook");
    await dashboard.says(`Deliveries to ${receiver.url}`);
    expect((await account.api.get("/webhooks")).body).to.have.length(1);
  });

  it("says to the holder of a usage key that the owner manages them", async () => {
    const made = await account.api.must("/add_usage_api_key", NO_PERMISSIONS);
    await dashboard.signIn(String(made["usage_api_key"]));
    await dashboard.go("Webhooks");
    await dashboard.says(/Only the account's owner manages webhooks/);
  });
});
