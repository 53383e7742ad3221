import type { ReactNode } from "react";
import { PageHead } from "../../parts/bits";
export function Groups(): ReactNode {
  return <PageHead title="Groups" />;
}
