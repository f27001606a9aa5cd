// What a person changes of a stored record before it is saved.

import { useEffect, useState } from "preact/hooks";

export interface Draft<Fields> {
  /** The stored fields, and what was changed of them. */
  fields: Fields;
  /** What differs from the stored fields. */
  changes: Partial<Fields>;
  isChanged: boolean;
  /** Whether it was saved, and not changed since. */
  isSaved: boolean;
  change: (changes: Partial<Fields>) => void;
  /** To be called with what was stored. */
  saved: (fields: Fields) => void;
}

/** Fields that were not changed follow the stored ones, so that saving leaves the changes of others. */
export function useDraft<Fields extends object>(stored: Fields): Draft<Fields> {
  const [touched, setTouched] = useState<Partial<Fields>>({});
  const [saved, setSaved] = useState<Fields | null>(null);
  const storedText = JSON.stringify(stored);
  // The record is loaded again after it was saved.
  useEffect(
    () => setSaved((saved) => (saved && JSON.stringify(saved) === storedText ? saved : null)),
    [storedText],
  );
  const base = saved ?? stored;
  const differs = (name: keyof Fields) =>
    name in touched && JSON.stringify(touched[name]) !== JSON.stringify(base[name]);
  const names = (Object.keys(base) as (keyof Fields)[]).filter(differs);
  const changes = Object.fromEntries(names.map((name) => [name, touched[name]])) as Partial<Fields>;
  return {
    fields: { ...base, ...changes },
    changes,
    isChanged: names.length > 0,
    isSaved: saved !== null && names.length === 0,
    change: (changes) => setTouched({ ...touched, ...changes }),
    saved: (fields) => {
      setTouched({});
      setSaved(fields);
    },
  };
}
