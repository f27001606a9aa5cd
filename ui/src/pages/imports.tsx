// Import: a file of another tool is looked at, loaded, and reported on.

import { mayWrite } from "../api/identity.ts";
import { useNews } from "../api/news.ts";
import { usePages } from "../api/pages.ts";
import { mapResource } from "../api/resource.ts";
import { MoreButton } from "../components/gain-columns.tsx";
import { Card, Empty } from "../components/parts.tsx";
import { fetchImports, isUnfinished } from "../loads/imports.ts";
import { FileCard } from "./imports/file.tsx";
import { ImportTable } from "./imports/list.tsx";
import type { PageProps } from "./props.ts";

/** How often the list is requested at most while an import runs, in milliseconds. */
const RELOAD_MS = 2_000;

export default function ImportsPage({ identity }: PageProps) {
  const imports = usePages("imports", fetchImports, { sort: "" });
  const mayLoad = mayWrite(identity);
  const isRunning = imports.data?.rows.some(isUnfinished) ?? false;
  useNews(RELOAD_MS, isRunning, imports.refresh);
  return (
    <>
      <div class="page-head">
        <div class="grow">
          <h1>Import</h1>
          <p class="quiet small">
            History from files of TikTok Studio, Meta Business Suite and other tools, as they are: CSV, Excel,
            JSON, Parquet.
          </p>
        </div>
      </div>
      {mayLoad !== false && <FileCard isEnabled={mayLoad === true} onEnded={imports.refresh} />}
      <Card
        title="Imports"
        note="of the last 30 days"
        resource={mapResource(imports, ({ rows }) => rows)}
        height={69}
        requests={imports.requests}
      >
        {(rows) =>
          rows.length === 0 ? (
            <Empty>Nothing was imported yet.</Empty>
          ) : (
            <ImportTable rows={rows} mayCancel={mayLoad === true} onCancelled={imports.refresh} />
          )
        }
      </Card>
      <MoreButton pages={imports} />
    </>
  );
}
