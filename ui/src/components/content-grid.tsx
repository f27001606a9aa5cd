// Posts as covers.

import { clock, compact, gain, postedOn } from "../format.ts";
import type { ContentRow } from "../loads/content-rows.ts";
import { linkTo } from "../state/view.ts";
import { PLATFORM_NAMES } from "./controls.tsx";
import { Count } from "./parts.tsx";
import { Picture } from "./picture.tsx";

interface Props {
  rows: readonly ContentRow[];
  /** The gain of a post that the grid shows, and its name. */
  gainOf: (row: ContentRow) => number | null;
  gainName: string;
}

export function ContentGrid({ rows, gainOf, gainName }: Props) {
  return (
    <ul class="grid">
      {rows.map((row) => (
        <li key={row.id}>
          <a href={linkTo(`/content/${row.id}`)} title={row.description ?? undefined}>
            <span class="cover-frame">
              <Picture
                id={row.account_id ?? row.id}
                name={row.account_username ?? PLATFORM_NAMES[row.platform]}
                kind="tile"
                src={row.cover_image_url}
              />
              <span class="badge small">
                {row.duration ? clock(row.duration) : (row.media_type ?? PLATFORM_NAMES[row.platform])}
              </span>
            </span>
            <span class="caption-lines" dir="auto">
              {row.description || "Post without a caption"}
            </span>
          </a>
          <p class="grid-origin quiet small">
            <span>{row.account_username ? `@${row.account_username}` : "tracked alone"}</span>
            <span>{postedOn(row.create_time)}</span>
          </p>
          <p class="grid-counts">
            <b>
              <Count value={gainOf(row)} format={gain} />
            </b>{" "}
            <span class="quiet small">
              {gainName === "views" ? (
                <>
                  of <Count value={row.view_count} format={compact} />
                </>
              ) : (
                gainName
              )}
            </span>
          </p>
        </li>
      ))}
    </ul>
  );
}

/** Room for posts that are not loaded yet. */
export function GridSkeleton({ count }: { count: number }) {
  return (
    <ul class="grid" aria-hidden="true">
      {Array.from({ length: count }, (_, index) => (
        <li key={index}>
          <span class="cover-frame skeleton" />
          <span class="caption-lines skeleton" />
          <p class="small">{"\u00a0"}</p>
          <p class="grid-counts">{"\u00a0"}</p>
        </li>
      ))}
    </ul>
  );
}
