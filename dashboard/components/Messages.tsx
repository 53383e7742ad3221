import { createContext, useCallback, useContext, useRef, useState, type ReactNode } from "react";

type Say = (text: string) => void;
const Context = createContext<Say>(() => undefined);
const SHOWN_MS = 6_000;

export const useMessages = (): Say => useContext(Context);

/** Short messages in the corner, read aloud by screen readers. */
export function Messages({ children }: { readonly children: ReactNode }): ReactNode {
  const [shown, setShown] = useState<readonly { id: number; text: string }[]>([]);
  const next = useRef(0);
  const say = useCallback((text: string) => {
    const id = (next.current += 1);
    setShown((now) => [...now.slice(-2), { id, text }]);
    setTimeout(() => setShown((now) => now.filter((one) => one.id !== id)), SHOWN_MS);
  }, []);
  return (
    <Context value={say}>
      {children}
      <div className="messages" role="status" aria-live="polite">
        {shown.map(({ id, text }) => (
          <div key={id} className="message fade-in">
            {text}
          </div>
        ))}
      </div>
    </Context>
  );
}
