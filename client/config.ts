/** `keywright/config`: the shape of keywright.config.ts, what a project wants its account to be. */

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
  /** What the key may spend over its life, in US cents; 0 or absent = no cap. */
  readonly balance?: number;
  /** Unix seconds from which the key is dead; 0 or absent = never. */
  readonly expiration?: number;
}

export interface ProjectConfig {
  readonly actions: Readonly<Record<string, ActionConfig>>;
  readonly pkps?: Readonly<Record<string, { readonly description?: string }>>;
  readonly groups?: Readonly<Record<string, GroupConfig>>;
  readonly keys?: Readonly<Record<string, KeyConfig>>;
  /** Where built actions go; default: build. */
  readonly outDir?: string;
  /** Where imports written as `name@1.2.3` are fetched from; default: https://cdn.jsdelivr.net/npm/. */
  readonly moduleOrigin?: string;
}

/** Gives the configuration its type. */
export const defineConfig = (config: ProjectConfig): ProjectConfig => config;
