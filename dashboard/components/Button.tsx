import { useRef, useState, type ButtonHTMLAttributes, type ReactNode } from "react";
import { useMessages } from "./Messages";
import { wordsOf } from "./failures";

interface Props extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, "onClick"> {
  readonly variant?: "primary" | "danger" | "danger solid" | "quiet" | "plain";
  readonly size?: "small";
  /** While the promise of an earlier press is pending, further presses do nothing. A failure is shown in a message. */
  readonly onPress?: () => unknown;
  readonly busy?: boolean;
  readonly children: ReactNode;
}

/** A button that ignores presses while busy. It stays focusable, so that the keyboard focus is not lost. */
export function Button({
  variant = "plain",
  size,
  onPress,
  busy = false,
  children,
  className = "",
  disabled = false,
  ...rest
}: Props): ReactNode {
  const [pending, setPending] = useState(false);
  const running = useRef(false);
  const say = useMessages();
  const press = async (): Promise<void> => {
    if (running.current || busy || disabled) return;
    const outcome = onPress?.();
    if (!(outcome instanceof Promise)) return;
    running.current = true;
    setPending(true);
    try {
      await outcome;
    } catch (error) {
      say(wordsOf(error));
    } finally {
      running.current = false;
      setPending(false);
    }
  };
  const waiting = busy || pending;
  const submits = rest.type === "submit";
  return (
    <button
      type="button"
      {...rest}
      className={`button ${variant} ${size ?? ""} ${className}`}
      aria-disabled={waiting || disabled}
      onClick={(event) => {
        if (submits) return void ((waiting || disabled) && event.preventDefault());
        void press();
      }}
    >
      {waiting && <span className="spinner" aria-hidden="true" />}
      {children}
    </button>
  );
}
