export { openChain } from "./chain";
export { parseSubmissionId } from "./submissions/records";
export { type ChainOptions, type ChainTuning } from "./settings";
