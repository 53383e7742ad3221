/** `keywright/testing`: a project's actions in the real sandbox, for its tests. */
import { resolve } from "node:path";
import { buildAction, readLock } from "./project/build";
import { openProject } from "./project/project";
import { startSandbox, type LocalSandboxOptions, type Recorded } from "./project/sandbox";

export type { LocalSandboxOptions, Recorded } from "./project/sandbox";

export interface LocalRunResult<Response> {
  readonly response: Response;
  readonly logs: string;
  readonly durationMs: number;
  /** Ops and fetches, in order. */
  readonly recorded: readonly Recorded[];
}

export interface LocalAction<Params, Response> {
  /** The throw-away PKP; passed as `pkpId` unless the parameters give another. */
  readonly pkpId: string;
  readonly cid: string;
  /** Rejects with ActionFailed when the action fails. */
  run(params?: Omit<Params, "pkpId"> & { pkpId?: string }): Promise<LocalRunResult<Response>>;
  close(): Promise<void>;
}

export class ActionFailed extends Error {
  override readonly name = "ActionFailed";
  constructor(
    readonly code: string,
    message: string,
    readonly logs: string,
    readonly recorded: readonly Recorded[],
  ) {
    super(message);
  }
}

/** Builds the action as `keywright build` does and gives it a sandbox. The project is the folder the tests run in. */
export async function localAction<Params extends object = Record<string, unknown>, Response = unknown>(
  action: string,
  options: LocalSandboxOptions & { readonly project?: string } = {},
): Promise<LocalAction<Params, Response>> {
  const folder = resolve(options.project ?? ".");
  const project = await openProject(folder);
  const { code, cid } = await buildAction(project, action, readLock(project));
  const sandbox = await startSandbox(folder, options);
  return {
    pkpId: sandbox.pkpId,
    cid,
    run: async (params) => {
      const { response, logs, error, durationMs, recorded } = await sandbox.run(code, { ...params });
      if (error !== undefined) throw new ActionFailed(error.code, error.message, logs, recorded);
      return { response: JSON.parse(response) as Response, logs, durationMs, recorded };
    },
    close: () => sandbox.close(),
  };
}
