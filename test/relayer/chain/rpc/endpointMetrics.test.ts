/** Metrics of each RPC endpoint: requests, failures, latency, and how far it is behind. */
import { expect } from "chai";
import { Metrics } from "../../../../relayer/metrics";
import { RpcClient } from "../../../../relayer/chain/rpc/client";
import { RpcDouble } from "../../../support/rpcDouble";

describe("metrics of each RPC endpoint", () => {
  const doubles: RpcDouble[] = [];
  afterEach(async () => {
    for (const double of doubles.splice(0)) await double.stop();
  });

  it("count requests and failures, show lagging and unreachable endpoints, name no address", async function () {
    this.timeout(20_000);
    for (let place = 0; place < 4; place++) doubles.push(await RpcDouble.start());
    const [first, lagging, away, other] = doubles as [RpcDouble, RpcDouble, RpcDouble, RpcDouble];
    const metrics = new Metrics();
    const rpc = new RpcClient({
      chainId: 31_337n,
      urls: doubles.map(({ url }) => `${url}/secret-key`),
      timeoutMs: 500,
      deadlineMs: 2_000,
      onExchange: (facts) => metrics.countExchange(facts),
    });
    first.world.head = 107n;
    lagging.world.head = 100n;
    away.fault = "hang";
    other.world.chainId = 8_453n;
    metrics.watchEndpoints({ endpointHeads: (withinMs) => rpc.heads(withinMs) });
    first.fault = "refuse";
    await rpc.call("eth_blockNumber", []);
    first.fault = "none";
    const text = await metrics.text();
    await rpc.close();
    for (const line of [
      'relayer_rpc_up{endpoint="1"} 1',
      'relayer_rpc_up{endpoint="2"} 1',
      'relayer_rpc_up{endpoint="3"} 0',
      'relayer_rpc_head_lag_blocks{endpoint="1"} 0',
      'relayer_rpc_head_lag_blocks{endpoint="2"} 7',
      'relayer_rpc_seconds_count{endpoint="1",outcome="transport"} 1',
      'relayer_source_up{source="rpc"} 1',
      'relayer_rpc_up{endpoint="4"} 0',
      'relayer_rpc_other_chain{endpoint="4"} 1',
      'relayer_rpc_other_chain{endpoint="1"} 0',
    ]) {
      expect(text.split("\n")).to.include(line);
    }
    expect(text).to.match(/relayer_rpc_seconds_count\{endpoint="3",outcome="transport"\} \d/);
    expect(text).not.to.contain("secret-key");
    expect(text).not.to.contain('head_lag_blocks{endpoint="3"}');
  });
});
