// Posts on the days on which they were posted, in weeks.

import { useResource } from "../../api/resource.ts";
import { Card, Count, Empty, RangeTooLong } from "../../components/parts.tsx";
import { Picture } from "../../components/picture.tsx";
import { WEEKDAYS, weeksOf } from "../../components/weeks.ts";
import { day, exact, plural } from "../../format.ts";
import { type ContentRow, contentFilters, fetchPosted, MAX_POSTED } from "../../loads/content-rows.ts";
import { knownViews } from "../../state/metrics.ts";
import { daysOf, linkTo, MAX_SERIES_DAYS, rangeDays, view } from "../../state/view.ts";
import * as css from "./calendar.module.css";

/** Posts of a day that are named; of more, how many. */
const MAX_NAMED = 3;

function postsByDay(rows: readonly ContentRow[]): ReadonlyMap<string, ContentRow[]> {
  const days = new Map<string, ContentRow[]>();
  for (const row of rows) {
    const date = row.create_time?.slice(0, 10) ?? "";
    days.set(date, [...(days.get(date) ?? []), row]);
  }
  for (const posts of days.values()) posts.sort((a, b) => b.view_count - a.view_count);
  return days;
}

export function PostCalendar() {
  const current = view.value;
  const isTooLong = rangeDays(current.range) > MAX_SERIES_DAYS;
  const posted = useResource(isTooLong ? null : (signal) => fetchPosted(current, signal), [
    JSON.stringify([current.range, contentFilters(current)]),
  ]);
  const { start, end } = daysOf(current.range);
  return (
    <Card
      title="Posts by day"
      note={
        posted.data?.isPart
          ? `the first ${exact(MAX_POSTED)} of this period; choose fewer days or a filter to see the others`
          : "days in UTC, most views first"
      }
      resource={posted}
      height={500}
      idle={<RangeTooLong />}
    >
      {({ rows, isPart }) =>
        rows.length === 0 ? (
          <Empty>Nothing was posted in this period.</Empty>
        ) : (
          <Weeks
            weeks={weeksOf(start, end)}
            posts={postsByDay(rows)}
            until={isPart ? rows.at(-1)?.create_time?.slice(0, 10) : undefined}
          />
        )
      }
    </Card>
  );
}

interface WeeksProps {
  weeks: readonly (readonly (string | null)[])[];
  posts: ReadonlyMap<string, readonly ContentRow[]>;
  /** The first day whose posts are not all there, if there is one. */
  until: string | undefined;
}

function Weeks({ weeks, posts, until }: WeeksProps) {
  return (
    <table class={css.calendar} aria-label="Posts by day">
      <thead>
        <tr>
          {WEEKDAYS.map((name) => (
            <th key={name} scope="col" abbr={name}>
              {name.slice(0, 3)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {weeks.map((week) => (
          <tr key={week.find((date) => date)}>
            {week.map((date, weekday) => (
              <td key={WEEKDAYS[weekday]} class={date ? "" : css.outside}>
                {date && <Day date={date} posts={until && date >= until ? null : (posts.get(date) ?? [])} />}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Without posts, they are not known. */
function Day({ date, posts }: { date: string; posts: readonly ContentRow[] | null }) {
  const { layout, posts: compared, ...filters } = Object.fromEntries(view.value.filters);
  const ofDay = { posted_after: date, posted_before: date, sort: "-view_count" };
  const href = linkTo("/content", { ...filters, ...ofDay });
  return (
    <>
      <p class={`${css.date} small`}>
        <span class="quiet">{date.endsWith("-01") ? day(date, date) : Number(date.slice(8))}</span>
        {posts === null && <span class="quiet">…</span>}
        {posts && posts.length > 0 && (
          <a href={href} title={`${plural(posts.length, "post")} on ${day(date)}`}>
            <b>{posts.length}</b>
          </a>
        )}
      </p>
      {posts?.slice(0, MAX_NAMED).map((post) => (
        <a key={post.id} class={css.post} href={linkTo(`/content/${post.id}`)} title={post.description ?? ""}>
          <Picture
            id={post.account_id ?? post.id}
            name={post.account_username ?? post.platform}
            kind="cover"
            src={post.cover_image_url}
          />
          <span class="small">
            <span dir="auto">{post.description || "Post without a caption"}</span>
            <span class="quiet">
              <Count value={knownViews(post)} /> views
            </span>
          </span>
        </a>
      ))}
      {posts && posts.length > MAX_NAMED && (
        <a class={`${css.others} small link`} href={href}>
          {posts.length - MAX_NAMED} more
        </a>
      )}
    </>
  );
}
