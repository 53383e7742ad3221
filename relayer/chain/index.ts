export { openChain } from "./chain";
export { parseSubmissionId } from "./submissions/records";
export { CHAIN_TUNING, type ChainOptions, type ChainTuning } from "./settings";
