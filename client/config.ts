/** `keywright/config`: the shape of keywright.config.ts, the desired state of a project's account. */

export interface ActionConfig {
  /** The action's TypeScript or JavaScript, from the project's folder. */
  readonly file: string;
  readonly description?: string;
}

export interface GroupConfig {
  readonly description?: string;
  /** Names of actions above, or CIDs. */
  readonly actions?: readonly string[];
  /** Names of PKPs above, or addresses. */
  readonly pkps?: readonly string[];
}

export interface KeyConfig {
  readonly description?: string;
  /** Names of groups above in which the key may run actions. */
  readonly execute?: readonly string[];
  /** The key's lifetime spending cap in US cents; 0 or absent = no cap. */
  readonly balance?: number;
  /** Unix seconds at which the key expires; 0 or absent = never. */
  readonly expiration?: number;
}

/** Exactly one of schedule, event and hook. */
export interface TriggerConfig {
  /** An action of the project, or a CID. */
  readonly action: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly schedule?: { readonly cron: string; readonly time_zone?: string; readonly missed?: "skip" | "once" };
  readonly event?: {
    readonly address: string;
    readonly topics?: readonly (string | null | readonly string[])[];
    readonly confirmations?: number;
    readonly chain_id?: number;
    readonly missed?: "skip" | "once";
  };
  readonly hook?: {
    readonly verification?: "none" | "hmac" | "standard_webhooks";
    readonly secret?: string;
    readonly respond?: boolean;
    readonly missed?: "skip" | "once";
  };
  /** Groups of the project, at least one; all of the account if left out. */
  readonly execute?: readonly string[];
  /** Cap in cents, and Unix seconds. */
  readonly balance?: number;
  readonly expiration?: number;
}

export interface ProjectConfig {
  readonly actions: Readonly<Record<string, ActionConfig>>;
  readonly pkps?: Readonly<Record<string, { readonly description?: string }>>;
  readonly groups?: Readonly<Record<string, GroupConfig>>;
  readonly keys?: Readonly<Record<string, KeyConfig>>;
  /** Actions that run by themselves; see docs/triggers.md. */
  readonly triggers?: Readonly<Record<string, TriggerConfig>>;
  /** Where built actions go; default: build. */
  readonly outDir?: string;
  /** Where imports written as `name@1.2.3` are fetched from; default: https://cdn.jsdelivr.net/npm/. */
  readonly moduleOrigin?: string;
}

/** Types the configuration. */
export const defineConfig = (config: ProjectConfig): ProjectConfig => config;
