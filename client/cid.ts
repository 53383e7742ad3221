/**
 * Computes the CID of code locally, so that an owner who lists an action need not trust the service for its hash. A
 * separate entry because of its size.
 */
export { cidOfCode } from "../protocol/cid";
export type { Cid } from "../protocol/ids";
