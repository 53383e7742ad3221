/**
 * Written from the route table (protocol/http) by KEYWRIGHT_UPDATE=1 npx mocha test/client/routes.test.ts; never by
 * hand.
 */
export interface ClientRoute {
  readonly method: "GET" | "POST";
  /** From the origin; parameters as `:name`. */
  readonly path: string;
  /** A call changes something: it carries an idempotency key. */
  readonly effect?: true;
  /** A list: its total is in X-Total-Count. */
  readonly paged?: true;
  /** The answer is text, not JSON. */
  readonly text?: true;
}

export const CLIENT_ROUTES = {
  newAccount: { method: "POST", path: "/core/v1/new_account", effect: true },
  accountExists: { method: "GET", path: "/core/v1/account_exists" },
  account: { method: "GET", path: "/core/v1/account" },
  updateAccount: { method: "POST", path: "/core/v1/update_account", effect: true },
  freezeAccount: { method: "POST", path: "/core/v1/freeze_account", effect: true },
  unfreezeAccount: { method: "POST", path: "/core/v1/unfreeze_account", effect: true },
  transferOwnership: { method: "POST", path: "/core/v1/transfer_ownership", effect: true },
  convertToChainSecuredAccount: { method: "POST", path: "/core/v1/convert_to_chain_secured_account", effect: true },
  addUsageApiKey: { method: "POST", path: "/core/v1/add_usage_api_key", effect: true },
  updateUsageApiKey: { method: "POST", path: "/core/v1/update_usage_api_key", effect: true },
  updateUsageApiKeyMetadata: { method: "POST", path: "/core/v1/update_usage_api_key_metadata", effect: true },
  removeUsageApiKey: { method: "POST", path: "/core/v1/remove_usage_api_key", effect: true },
  revokeAllUsageApiKeys: { method: "POST", path: "/core/v1/revoke_all_usage_api_keys", effect: true },
  listApiKeys: { method: "GET", path: "/core/v1/list_api_keys", paged: true },
  addGroup: { method: "POST", path: "/core/v1/add_group", effect: true },
  removeGroup: { method: "POST", path: "/core/v1/remove_group", effect: true },
  updateGroup: { method: "POST", path: "/core/v1/update_group", effect: true },
  group: { method: "GET", path: "/core/v1/groups/:id" },
  listGroups: { method: "GET", path: "/core/v1/list_groups", paged: true },
  addActionToGroup: { method: "POST", path: "/core/v1/add_action_to_group", effect: true },
  removeActionFromGroup: { method: "POST", path: "/core/v1/remove_action_from_group", effect: true },
  addPkpToGroup: { method: "POST", path: "/core/v1/add_pkp_to_group", effect: true },
  removePkpFromGroup: { method: "POST", path: "/core/v1/remove_pkp_from_group", effect: true },
  changeGroupActions: { method: "POST", path: "/core/v1/groups/:id/actions", effect: true },
  changeGroupPkps: { method: "POST", path: "/core/v1/groups/:id/pkps", effect: true },
  createWallet: { method: "POST", path: "/core/v1/create_wallet", effect: true },
  updateWallet: { method: "POST", path: "/core/v1/update_wallet", effect: true },
  setWalletOps: { method: "POST", path: "/core/v1/set_wallet_ops", effect: true },
  listWallets: { method: "GET", path: "/core/v1/list_wallets", paged: true },
  listWalletsInGroup: { method: "GET", path: "/core/v1/list_wallets_in_group", paged: true },
  publicKeys: { method: "GET", path: "/core/v1/public_keys" },
  addAction: { method: "POST", path: "/core/v1/add_action", effect: true },
  deleteAction: { method: "POST", path: "/core/v1/delete_action", effect: true },
  updateActionMetadata: { method: "POST", path: "/core/v1/update_action_metadata", effect: true },
  listActions: { method: "GET", path: "/core/v1/list_actions", paged: true },
  getActionIpfsId: { method: "POST", path: "/core/v1/get_lit_action_ipfs_id" },
  runAction: { method: "POST", path: "/core/v1/run_action", effect: true },
  explainExecution: { method: "GET", path: "/core/v1/explain_execution" },
  listRuns: { method: "GET", path: "/core/v1/list_runs", paged: true },
  usage: { method: "GET", path: "/core/v1/usage", paged: true },
  createTrigger: { method: "POST", path: "/core/v1/triggers", effect: true },
  listTriggers: { method: "GET", path: "/core/v1/triggers", paged: true },
  getTrigger: { method: "GET", path: "/core/v1/triggers/:id" },
  listFirings: { method: "GET", path: "/core/v1/triggers/:id/firings", paged: true },
  updateTrigger: { method: "POST", path: "/core/v1/triggers/:id/update", effect: true },
  deleteTrigger: { method: "POST", path: "/core/v1/triggers/:id/delete", effect: true },
  runTrigger: { method: "POST", path: "/core/v1/triggers/:id/run", effect: true },
  createWalletWithSignature: { method: "POST", path: "/core/v1/create_wallet_with_signature", effect: true },
  addUsageApiKeyWithSignature: { method: "POST", path: "/core/v1/add_usage_api_key_with_signature", effect: true },
  relay: { method: "POST", path: "/core/v1/relay", effect: true },
  relayNonce: { method: "GET", path: "/core/v1/relay_nonce" },
  getNodeChainConfig: { method: "GET", path: "/core/v1/get_node_chain_config" },
  getApiPayers: { method: "GET", path: "/core/v1/get_api_payers" },
  getAdminApiPayer: { method: "GET", path: "/core/v1/get_admin_api_payer" },
  limits: { method: "GET", path: "/core/v1/limits" },
  version: { method: "GET", path: "/core/v1/version" },
  stripeConfig: { method: "GET", path: "/core/v1/billing/stripe_config" },
  balance: { method: "GET", path: "/core/v1/billing/balance" },
  createPaymentIntent: { method: "POST", path: "/core/v1/billing/create_payment_intent", effect: true },
  confirmPayment: { method: "POST", path: "/core/v1/billing/confirm_payment", effect: true },
  history: { method: "GET", path: "/core/v1/billing/history", paged: true },
  events: { method: "GET", path: "/core/v1/events" },
  submission: { method: "GET", path: "/core/v1/submissions/:id" },
  exportHistory: { method: "GET", path: "/core/v1/export", text: true },
  listWebhooks: { method: "GET", path: "/core/v1/webhooks" },
  createWebhook: { method: "POST", path: "/core/v1/webhooks", effect: true },
  updateWebhook: { method: "POST", path: "/core/v1/webhooks/:id", effect: true },
  deleteWebhook: { method: "POST", path: "/core/v1/webhooks/:id/delete", effect: true },
  testWebhook: { method: "POST", path: "/core/v1/webhooks/:id/test", effect: true },
  webhookDeliveries: { method: "GET", path: "/core/v1/webhooks/:id/deliveries" },
  replayWebhook: { method: "POST", path: "/core/v1/webhooks/:id/replay", effect: true },
  receiveWebhook: { method: "POST", path: "/core/v1/webhooks/:id/receive" },
  health: { method: "GET", path: "/health" },
  ready: { method: "GET", path: "/ready" },
  info: { method: "GET", path: "/info" },
  attestation: { method: "GET", path: "/attestation" },
} as const satisfies Record<string, ClientRoute>;
