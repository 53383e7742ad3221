/** The CID of code, computed here instead of asked for: an owner who lists an action need not take the service's word for its hash. Apart from the rest for its size. */
export { cidOfCode } from "../protocol/cid";
