import type { ReactNode } from "react";
import { PageHead } from "../../parts/bits";
export function UsageKeys(): ReactNode {
  return <PageHead title="UsageKeys" />;
}
