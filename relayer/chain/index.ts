export { openChain } from "./chain";
export { parseSubmissionId } from "./records";
export { CHAIN_TUNING, type ChainOptions, type ChainTuning } from "./settings";
