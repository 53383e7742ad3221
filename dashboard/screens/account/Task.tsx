import type { ReactNode } from "react";

/** One operation on the whole account, with its explanation. */
export function Task({
  title,
  about,
  children,
}: {
  readonly title: string;
  readonly about: ReactNode;
  readonly children?: ReactNode;
}): ReactNode {
  return (
    <section className="card task" aria-label={title}>
      <div className="grow stack-s">
        <h2>{title}</h2>
        <p className="soft">{about}</p>
      </div>
      {children}
    </section>
  );
}
