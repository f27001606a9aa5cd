// Answers of batch endpoints.

import type { components } from "./schema.d.ts";

/** Items of a request. */
export const MAX_BATCH = 500;

/** Why an item failed. */
export function itemMessage({ errors, detail }: components["schemas"]["BatchItemResult"]): string {
  return errors?.map(({ message }) => message).join("; ") || (detail ?? "");
}
