/** Which chain and contract a service works with, by its variables, its deployment file (deployments/<network>.json), or both. No I/O: the caller reads the file. */
import { z } from "zod";
import { parseAddress, type Address } from "./ids";

export interface DeploymentSettings {
  readonly chainId: bigint;
  readonly contractAddress: Address;
  /** The block that holds the contract's creation: the first that can hold an event. 0 without a file. */
  readonly contractBlock: number;
}

export interface DeploymentSources {
  /** CHAIN_ID */
  readonly chainId: number | undefined;
  /** CONTRACT_ADDRESS, as it was written. */
  readonly contractAddress: string | undefined;
  /** DEPLOYMENT_FILE: its path and a way to its text. */
  readonly file: { readonly path: string; readonly read: () => string } | undefined;
}

const deploymentFile = z.object({
  chainId: z
    .string()
    .regex(/^[1-9][0-9]*$/)
    .transform(BigInt),
  contractAddress: z.string().transform((text, context) => parseAddress(text) ?? refuse(context)),
  blockNumber: z.number().int().nonnegative().default(0),
});

function refuse(context: z.RefinementCtx): typeof z.NEVER {
  context.addIssue({ code: "custom", message: "must be 0x and 40 hex digits" });
  return z.NEVER;
}

/** The settings, or undefined with a sentence in `problems` for each thing to fix. Variables and file must not contradict each other. */
export function deploymentSettings(sources: DeploymentSources, problems: string[]): DeploymentSettings | undefined {
  const file = sources.file === undefined ? undefined : readFile(sources.file, problems);
  const given = sources.contractAddress === undefined ? undefined : parseAddress(sources.contractAddress);
  const chainId = sources.chainId === undefined ? file?.chainId : BigInt(sources.chainId);
  const contractAddress = sources.contractAddress === undefined ? file?.contractAddress : given;
  if (chainId === undefined) problems.push("CHAIN_ID is needed (or a DEPLOYMENT_FILE that names it)");
  if (contractAddress === undefined) problems.push("CONTRACT_ADDRESS must be an address: 0x and 40 hex digits (or a DEPLOYMENT_FILE that names it)");
  if (chainId === undefined || contractAddress === undefined) return undefined;
  if (file !== undefined && file.chainId !== chainId) problems.push(`CHAIN_ID is ${chainId}, but DEPLOYMENT_FILE says ${file.chainId}: give one or the other`);
  if (file !== undefined && file.contractAddress !== contractAddress)
    problems.push(`CONTRACT_ADDRESS is ${contractAddress}, but DEPLOYMENT_FILE says ${file.contractAddress}: give one or the other`);
  return { chainId, contractAddress, contractBlock: file?.blockNumber ?? 0 };
}

function readFile({ path, read }: { path: string; read: () => string }, problems: string[]): z.infer<typeof deploymentFile> | undefined {
  try {
    return deploymentFile.parse(JSON.parse(read()));
  } catch (error) {
    const issue = error instanceof z.ZodError ? error.issues[0] : undefined;
    const reason = issue ? `${issue.path.join(".")} ${issue.message}` : error instanceof Error ? error.message : String(error);
    problems.push(`DEPLOYMENT_FILE ${path} cannot be read as a deployment (${reason})`);
    return undefined;
  }
}
