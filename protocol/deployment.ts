/**
 * Chain and contract of a service, from its variables, its deployment file (deployments/<network>.json) or both. No
 * I/O: the caller reads the file.
 */
import { z } from "zod";
import { parseAddress, type Address } from "./ids";

export interface DeploymentSettings {
  readonly chainId: bigint;
  readonly contractAddress: Address;
  /** The block in which the contract was created, the first that can contain its events. 0 without a file. */
  readonly contractBlock: number;
}

export interface DeploymentSources {
  /** CHAIN_ID */
  readonly chainId: number | undefined;
  /** CONTRACT_ADDRESS, unparsed. */
  readonly contractAddress: string | undefined;
  /** DEPLOYMENT_FILE: its path and a function that reads it. */
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

type DeploymentFile = z.infer<typeof deploymentFile>;

function refuse(context: z.RefinementCtx): typeof z.NEVER {
  context.addIssue({ code: "custom", message: "must be 0x and 40 hex digits" });
  return z.NEVER;
}

/**
 * The settings, or undefined with one sentence in `problems` per error. Variables and file must not contradict each
 * other.
 */
export function deploymentSettings(sources: DeploymentSources, problems: string[]): DeploymentSettings | undefined {
  const file = sources.file && readFile(sources.file, problems);
  const chainId = sources.chainId === undefined ? file?.chainId : BigInt(sources.chainId);
  const contractAddress =
    sources.contractAddress === undefined ? file?.contractAddress : parseAddress(sources.contractAddress);
  if (chainId === undefined) problems.push("CHAIN_ID is needed (or a DEPLOYMENT_FILE that names it)");
  if (contractAddress === undefined)
    problems.push("CONTRACT_ADDRESS must be an address: 0x and 40 hex digits (or a DEPLOYMENT_FILE that names it)");
  if (chainId === undefined || contractAddress === undefined) return undefined;
  if (file) problems.push(...contradictions(file, chainId, contractAddress));
  return { chainId, contractAddress, contractBlock: file?.blockNumber ?? 0 };
}

function contradictions(file: DeploymentFile, chainId: bigint, contractAddress: Address): string[] {
  const says = (variable: string, given: unknown, inFile: unknown): string[] =>
    given === inFile
      ? []
      : [`${variable} is ${String(given)}, but DEPLOYMENT_FILE says ${String(inFile)}: give one or the other`];
  return [
    ...says("CHAIN_ID", chainId, file.chainId),
    ...says("CONTRACT_ADDRESS", contractAddress, file.contractAddress),
  ];
}

function readFile(
  { path, read }: { path: string; read: () => string },
  problems: string[],
): DeploymentFile | undefined {
  try {
    return deploymentFile.parse(JSON.parse(read()));
  } catch (error) {
    const issue = error instanceof z.ZodError ? error.issues[0] : undefined;
    const reason = issue
      ? `${issue.path.join(".")} ${issue.message}`
      : error instanceof Error
        ? error.message
        : String(error);
    problems.push(`DEPLOYMENT_FILE ${path} cannot be read as a deployment (${reason})`);
    return undefined;
  }
}
