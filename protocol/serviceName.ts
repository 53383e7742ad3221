/**
 * The service's name as set by the operator (`SERVICE_NAME`): letters and digits, used in the typed-data domain and in
 * one route.
 */
export const DEFAULT_SERVICE_NAME = "Keywright";
export const SERVICE_NAME_PATTERN = /^[A-Za-z][A-Za-z0-9]{0,31}$/;

/** The name in the EIP-712 domain of the ERC-2771 forwarder. */
export const forwarderName = (serviceName: string): string => `${serviceName} Forwarder`;

/** The `<svc>` of `/get_<svc>_action_ipfs_id`. */
export const routeWord = (serviceName: string): string => serviceName.toLowerCase();
