/** Why a run is refused, in the order of the contract's enum, as the API says it. */
export const DENIALS = [
  "none",
  "unknown_key",
  "key_expired",
  "account_chain_secured",
  "no_execute_scope",
  "action_not_permitted",
  "unknown_pkp",
  "pkp_not_permitted",
  "account_frozen",
] as const;
