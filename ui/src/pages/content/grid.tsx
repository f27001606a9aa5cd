// Posts as covers.

import { PLATFORM_NAMES } from "../../components/controls.tsx";
import { Count } from "../../components/parts.tsx";
import { Picture } from "../../components/picture.tsx";
import { clock, compact, gain, postedOn } from "../../format.ts";
import type { ContentRow } from "../../loads/content-rows.ts";
import { knownViews } from "../../state/metrics.ts";
import { linkTo } from "../../state/view.ts";
import * as css from "../content.module.css";

interface Props {
  rows: readonly ContentRow[];
  /** The gain of a post that the grid shows, and its name. */
  gainOf: (row: ContentRow) => number | null;
  gainName: string;
}

export function ContentGrid({ rows, gainOf, gainName }: Props) {
  return (
    <ul class={css.grid}>
      {rows.map((row) => (
        <li key={row.id}>
          <a href={linkTo(`/content/${row.id}`)} title={row.description ?? undefined}>
            <span class={css.coverFrame}>
              <Picture
                id={row.account_id ?? row.id}
                name={row.account_username ?? PLATFORM_NAMES[row.platform]}
                kind="tile"
                src={row.cover_image_url}
              />
              <span class={`${css.badge} small`}>
                {row.duration ? clock(row.duration) : (row.media_type ?? PLATFORM_NAMES[row.platform])}
              </span>
            </span>
            <span class={css.captionLines} dir="auto">
              {row.description || "Post without a caption"}
            </span>
          </a>
          <p class={`${css.gridOrigin} quiet small`}>
            <span>{row.account_username ? `@${row.account_username}` : "tracked alone"}</span>
            <span>{postedOn(row.create_time)}</span>
          </p>
          <p>
            <b>
              <Count value={gainOf(row)} format={gain} />
            </b>{" "}
            <span class="quiet small">
              {gainName === "views" ? (
                <>
                  of <Count value={knownViews(row)} format={compact} />
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
    <ul class={css.grid} aria-hidden="true">
      {Array.from({ length: count }, (_, index) => (
        <li key={index}>
          <span class={`${css.coverFrame} skeleton`} />
          <span class={`${css.captionLines} skeleton`} />
          <p class="small">{"\u00a0"}</p>
          <p>{"\u00a0"}</p>
        </li>
      ))}
    </ul>
  );
}
