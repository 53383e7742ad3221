import type { ReactNode } from "react";

/** Outlines on a grid of 24, drawn in the surrounding text's colour. */
const PATHS = {
  overview: "M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-4H4zM14 8h6V4h-6z",
  pkps: "M15.5 8.5a5 5 0 1 0-4 4.9L13 12h2v-2h2l1.5-1.5M8.6 8.6h.01M13.4 13.4 20 20M17.5 17.5 16 19",
  groups: "M4 5h7v6H4zM13 13h7v6h-7zM11 8h4.5a1 1 0 0 1 1 1v4M13 16H8.500a1 1 0 0 1-1-1v-4",
  actions: "m9 8-4 4 4 4M15 8l4 4-4 4M13 6l-2 12",
  usageKeys: "M12 3 5 6v5.500c0 4.300 2.900 7.600 7 9.500 4.100-1.900 7-5.200 7-9.500V6zM9.500 12l1.800 1.800L15 10",
  runner: "M7 5v14l11-7z",
  triggers: "M12 7v5l3 2M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z",
  budgets: "M12 3v9l6.400 6.400M12 3a9 9 0 1 0 9 9h-9",
  activity: "M3 12h4l3-8 4 16 3-8h4",
  credit: "M3 7h18v11H3zM3 11h18M7 15h3",
  webhooks: "M4 12a8 8 0 0 1 8-8M4 12a8 8 0 0 0 8 8M8 12a4 4 0 0 1 4-4M8 12a4 4 0 0 0 4 4M12 12h9M18 9l3 3-3 3",
  trust: "M12 3a4 4 0 0 1 4 4v3M8 10V7a4 4 0 0 1 4-4M6 10h12v10H6zM12 14v2.500",
  account: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM5 20c.6-3.500 3.400-5.500 7-5.500s6.400 2 7 5.500",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  done: "m5 12.500 4.500 4.500L19 7.500",
  out: "M14 4h6v6M20 4l-9 9M18 14v6H4V6h6",
  menu: "M4 7h16M4 12h16M4 17h16",
  close: "m6 6 12 12M18 6 6 18",
  back: "m14 6-6 6 6 6",
  more: "M4.500 12a1 1 0 1 0 2 0 1 1 0 1 0-2 0M11 12a1 1 0 1 0 2 0 1 1 0 1 0-2 0M17.500 12a1 1 0 1 0 2 0 1 1 0 1 0-2 0",
  policies: "M6 3h9l4 4v14H6zM9 12h7M9 16h7M9 8h3",
  search: "M10.500 17a6.500 6.500 0 1 0 0-13 6.500 6.500 0 0 0 0 13zM15.500 15.500 20 20",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { readonly name: IconName }): ReactNode {
  return (
    <svg
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.7"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
