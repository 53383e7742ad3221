import { useId, useMemo, useState, type InputHTMLAttributes, type ReactNode } from "react";

/** The values of a form by name: what a field shows of one, and how it changes it. */
export const fieldOf =
  <Form extends object>(form: Form, onChange: (part: Partial<Form>) => void) =>
  <Name extends keyof Form>(name: Name) => ({
    value: form[name],
    onChange: (value: Form[Name]) => onChange({ [name]: value } as unknown as Partial<Form>),
  });

interface TextProps extends Omit<InputHTMLAttributes<HTMLInputElement>, "onChange" | "value"> {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly hint?: ReactNode;
  /** More than one line. */
  readonly lines?: number;
  readonly code?: boolean;
}

export function TextField({ label, value, onChange, hint, lines, code = false, ...rest }: TextProps): ReactNode {
  const id = useId();
  const shared = {
    id,
    value,
    className: `input ${code ? "code" : ""}`,
    ...(hint === undefined ? {} : { "aria-describedby": `${id}-hint` }),
    ...(code ? { spellCheck: false, autoCapitalize: "off", autoCorrect: "off" } : {}),
  };
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {lines === undefined ? (
        <input
          type="text"
          autoComplete="off"
          {...rest}
          {...shared}
          onChange={(event) => onChange(event.target.value)}
        />
      ) : (
        <textarea
          {...shared}
          rows={lines}
          required={rest.required}
          placeholder={rest.placeholder}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
      {hint !== undefined && (
        <span className="hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
    </div>
  );
}

/** Name and description, common to all items. */
export interface Strings {
  readonly name: string;
  readonly description: string;
}
export function StringsFields({
  value,
  onChange,
  placeholder,
}: {
  value: Strings;
  onChange: (value: Strings) => void;
  placeholder?: string;
}): ReactNode {
  const field = fieldOf(value, (part) => onChange({ ...value, ...part }));
  return (
    <>
      <TextField label="Name" required maxLength={128} placeholder={placeholder} {...field("name")} />
      <TextField label="Description" maxLength={1024} placeholder="Optional" {...field("description")} />
    </>
  );
}

interface CheckProps {
  readonly label: ReactNode;
  readonly hint?: ReactNode;
  readonly checked: boolean;
  readonly disabled?: boolean;
  readonly onChange: (checked: boolean) => void;
}
export function Check({ label, hint, checked, disabled = false, onChange }: CheckProps): ReactNode {
  const id = useId();
  return (
    <label className="check">
      <input
        type="checkbox"
        checked={checked}
        disabled={disabled}
        aria-describedby={hint === undefined ? undefined : id}
        aria-labelledby={`${id}-label`}
        onChange={(event) => onChange(event.target.checked)}
      />
      <span>
        <span id={`${id}-label`}>{label}</span>
        {hint !== undefined && (
          <span className="hint" id={id}>
            {hint}
          </span>
        )}
      </span>
    </label>
  );
}

interface ChoiceProps<T extends string> {
  readonly legend: string;
  readonly value: T;
  readonly options: readonly (readonly [value: T, label: string])[];
  readonly onChange: (value: T) => void;
}
export function Choices<T extends string>({ legend, value, options, onChange }: ChoiceProps<T>): ReactNode {
  const name = useId();
  return (
    <fieldset className="stack-s">
      <legend className="label">{legend}</legend>
      <div className="choices">
        {options.map(([option, label]) => (
          <label className="choice" key={option}>
            <input type="radio" name={name} checked={option === value} onChange={() => onChange(option)} />
            <span>{label}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

interface SelectProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly options: readonly (readonly [value: T, label: string])[];
  readonly onChange: (value: T) => void;
  readonly hint?: ReactNode;
}
export function Select<T extends string>({ label, value, options, onChange, hint }: SelectProps<T>): ReactNode {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <select id={id} className="input" value={value} onChange={(event) => onChange(event.target.value as T)}>
        {options.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
      {hint !== undefined && <span className="hint">{hint}</span>}
    </div>
  );
}

export interface Option {
  readonly id: string;
  readonly label: string;
  readonly hint?: string;
}
interface PickerProps {
  readonly legend: string;
  readonly options: readonly Option[];
  readonly chosen: readonly string[];
  readonly onChange: (chosen: readonly string[]) => void;
  /** Shown when there is nothing to pick from. */
  readonly empty?: ReactNode;
}
const SHOWN = 200;

/** Selects several items of a list by search and checkboxes, so that no id has to be typed. */
export function Picker({ legend, options, chosen, onChange, empty }: PickerProps): ReactNode {
  const [search, setSearch] = useState("");
  const set = useMemo(() => new Set(chosen), [chosen]);
  const found = useMemo(() => matching(options, search), [options, search]);
  const toggle = (id: string, on: boolean): void => onChange(on ? [...chosen, id] : chosen.filter((one) => one !== id));
  return (
    <fieldset className="stack-s">
      <legend className="label">{legend}</legend>
      {options.length === 0 ? (
        <div className="soft small">{empty}</div>
      ) : (
        <div className="picker">
          {options.length > 8 && (
            <input
              className="input"
              type="search"
              placeholder="Search"
              aria-label={`Search ${legend}`}
              value={search}
              onChange={(e) => setSearch(e.target.value)}
              // It is no field of the form around it, which would be sent half filled in.
              onKeyDown={(e) => e.key === "Enter" && e.preventDefault()}
            />
          )}
          <div className="options">
            {found.slice(0, SHOWN).map(({ id, label, hint }) => (
              <Check key={id} label={label} hint={hint} checked={set.has(id)} onChange={(on) => toggle(id, on)} />
            ))}
            {found.length > SHOWN && <p className="soft small">{found.length - SHOWN} more: type to find them.</p>}
          </div>
        </div>
      )}
    </fieldset>
  );
}

function matching(options: readonly Option[], search: string): readonly Option[] {
  const words = search.trim().toLowerCase();
  return words === ""
    ? options
    : options.filter(({ id, label, hint }) => `${id} ${label} ${hint ?? ""}`.toLowerCase().includes(words));
}
