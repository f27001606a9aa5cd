// Fields of the editor. What the API says about a field stands at the field.

import { type ComponentChildren, createContext } from "preact";
import { useContext, useId } from "preact/hooks";

import * as css from "../editor.module.css";

interface Problem {
  field: string;
  message: string;
}

export const Problems = createContext<readonly Problem[]>([]);

/** Whether a problem is of a field, or of a part of it. */
export function isAt(path: string, { field }: Problem): boolean {
  return field === path || field.startsWith(`${path}.`) || field.startsWith(`${path}[`);
}

interface Attributes {
  "aria-invalid"?: true;
  "aria-describedby"?: string;
}

interface Props {
  label: string;
  /** Of the field in the body of the request. */
  path: string;
  hint?: string;
  /** For several controls, each with a name of its own. */
  isGroup?: boolean;
  children: (attributes: Attributes) => ComponentChildren;
}

export function Field({ label, path, hint, isGroup = false, children }: Props) {
  const id = useId();
  const problem = useContext(Problems).find((problem) => isAt(path, problem));
  const Frame = isGroup ? "div" : "label";
  return (
    <div class={css.field}>
      <Frame class="field">
        <span class="quiet small">{label}</span>
        {children(
          problem ? { "aria-invalid": true, "aria-describedby": id } : hint ? { "aria-describedby": id } : {},
        )}
      </Frame>
      {problem ? (
        <p id={id} class={`${css.problem} small`}>
          {problem.message}
        </p>
      ) : (
        hint && (
          <p id={id} class="quiet small">
            {hint}
          </p>
        )
      )}
    </div>
  );
}

const ATTRIBUTES = {
  text: { type: "text", dir: "auto" },
  date: { type: "date" },
  number: { type: "number", inputMode: "numeric", min: 0, step: 1 },
} as const;

/** Of controls that are no field of their own. */
export function FieldProblem({ path }: { path: string }) {
  const problem = useContext(Problems).find((problem) => isAt(path, problem));
  return problem ? <p class={`${css.problem} small`}>{problem.message}</p> : null;
}

interface TextProps extends Pick<Props, "label" | "path" | "hint"> {
  value: string;
  onChange: (value: string) => void;
  type?: keyof typeof ATTRIBUTES;
  placeholder?: string;
  isRequired?: boolean;
  maxLength?: number;
}

export function TextField({
  value,
  onChange,
  type = "text",
  placeholder,
  isRequired = false,
  maxLength = 255,
  ...field
}: TextProps) {
  return (
    <Field {...field}>
      {(attributes) => (
        <input
          {...attributes}
          {...ATTRIBUTES[type]}
          required={isRequired}
          {...(type === "text" ? { maxLength } : {})}
          {...(placeholder ? { placeholder } : {})}
          value={value}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

interface SelectProps<Value extends string> extends Pick<Props, "label" | "path" | "hint"> {
  value: Value;
  options: readonly (readonly [Value, string])[];
  onChange: (value: Value) => void;
}

export function SelectField<Value extends string>({
  value,
  options,
  onChange,
  ...field
}: SelectProps<Value>) {
  return (
    <Field {...field}>
      {(attributes) => (
        <select
          {...attributes}
          value={value}
          onChange={(event) => onChange(event.currentTarget.value as Value)}
        >
          {options.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
