/**
 * `keywright/provider`: PKPs as a wallet of a web application. An EIP-1193 provider over a client, its announcement to
 * the page (EIP-6963), and a connector for wagmi.
 */
export { announceKeywright, type ProviderInfo } from "./announce";
export { keywrightConnector, type ConnectorOptions, type KeywrightConnector } from "./wagmi";
export {
  keywrightProvider,
  type KeywrightProvider,
  type ProviderEvents,
  type ProviderOptions,
  type ProviderRequest,
} from "./eip1193";
