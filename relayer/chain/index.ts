export { openChain } from "./chain";
export { parseSubmissionId } from "./submissions/rows";
export { type ChainOptions, type ChainTuning } from "./settings";
