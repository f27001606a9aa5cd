import type { Identity } from "../api/client.ts";
import type { Load } from "../api/resource.ts";

/** What every page is given. */
export interface PageProps {
  identity: Load<Identity>;
  /** The id in the path of a single record's page. */
  id: string;
}
