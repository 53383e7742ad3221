import type { ReactNode } from "react";
import { PageHead } from "../../parts/bits";
export function Account(): ReactNode {
  return <PageHead title="Account" />;
}
