import type { ReactNode } from "react";
import { PageHead } from "../../parts/bits";
export function Activity(): ReactNode {
  return <PageHead title="Activity" />;
}
