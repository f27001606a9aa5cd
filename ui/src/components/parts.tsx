// Small parts that every page uses.

import { signal } from "@preact/signals-core";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import type { ApiProblem } from "../api/client.ts";
import { asCurl } from "../api/requests.ts";
import type { Resource } from "../api/resource.ts";
import { CardWidth, useObservedWidth } from "../charts/size.ts";
import { compact, days, duration, exact, change as formatChange, time } from "../format.ts";
import { key } from "../state/session.ts";
import { MAX_SERIES_DAYS, view } from "../state/view.ts";
import { CopyButton } from "./copy.tsx";
import { Highlighted } from "./highlighted.tsx";
import { Menu } from "./menu.tsx";
import * as partsCss from "./parts.module.css";
import { Picture } from "./picture.tsx";
import * as tableCss from "./table.module.css";

/** A number in short form; its title has all digits. */
export function Count({
  value,
  format = compact,
}: {
  value: number | null | undefined;
  format?: (value: number | null) => string;
}) {
  return <span title={exact(value)}>{format(value ?? null)}</span>;
}

interface ChangeProps {
  percent: number | null;
  current: number | null | undefined;
  /** The value that the percentage compares with. */
  previous: number | null | undefined;
}

/** How a value changed: none in percent of a loss, and from nothing it is new. */
export function Change({ percent, current, previous }: ChangeProps) {
  const [now, before] = [current ?? 0, previous ?? 0];
  const isNew = previous === 0 && now > 0;
  const shown = before < 0 ? null : percent;
  const isUp = isNew || (shown !== null && shown > 0 && now >= 0);
  const isDown = shown !== null && shown < 0;
  return (
    <span
      class={`small ${isUp ? partsCss.up : isDown ? partsCss.down : "quiet"}`}
      title={`${exact(previous)} in the ${view.value.compare === "year" ? "same days a year before" : "period before"}`}
    >
      {isNew ? "new" : formatChange(shown)}
    </span>
  );
}

interface EntityProps {
  id: string;
  /** Of a page, or at a platform. */
  href: string | null;
  name: string;
  detail?: ComponentChildren;
  kind?: "profile" | "cover";
  src?: string | null;
  /** What the initials are of, if not of the name. */
  owner?: string | null;
  /** What is marked in the name. */
  needles?: readonly string[];
}

/** A picture with a linked name, and a detail below. */
const NO_NEEDLES: readonly string[] = [];

export function Entity({
  id,
  href,
  name,
  detail,
  kind = "profile",
  src = null,
  owner = null,
  needles = NO_NEEDLES,
}: EntityProps) {
  const text = <Highlighted text={name} needles={needles} />;
  return (
    <div class={tableCss.entity}>
      <Picture id={id} name={owner ?? name} kind={kind} src={src} />
      <span>
        {href === null ? (
          <b title={name} dir="auto">
            {text}
          </b>
        ) : (
          <a
            href={href}
            title={name}
            dir="auto"
            {...(href.startsWith("/") ? {} : { target: "_blank", rel: "noopener noreferrer" })}
          >
            <b>{text}</b>
          </a>
        )}
        {detail && <small class="quiet small">{detail}</small>}
      </span>
    </div>
  );
}

interface Attempt {
  problem?: ApiProblem | undefined;
  /** The latter if it has both. */
  reload?: () => void;
  retry?: () => void;
}

/** What went wrong, if anything did, and a button to try again. */
export function ProblemNotice({ of: { problem, reload, retry = reload } }: { of: Attempt }) {
  if (!problem) return null;
  return (
    <div class="notice" role="alert">
      <p>{problem.message}</p>
      {problem.fields.length > 1 &&
        problem.fields.map(({ field, message }) => (
          <p key={field} class="small">
            {field}: {message}
          </p>
        ))}
      {problem.requestId && <p class="quiet small">Request {problem.requestId}</p>}
      <p>
        <RetryButton
          key={problem.requestId}
          wait={problem.status === 429 ? (problem.retryAfter ?? 0) : 0}
          retry={retry}
        />
      </p>
    </div>
  );
}

/** Says when it may be pressed. */
function RetryButton({ wait, retry }: { wait: number; retry: (() => void) | undefined }) {
  const [left, setLeft] = useState(wait);
  useEffect(() => {
    if (left <= 0) return;
    const timer = setTimeout(() => setLeft(left - 1), 1_000);
    return () => clearTimeout(timer);
  }, [left]);
  return (
    <button type="button" disabled={left > 0} onClick={retry}>
      {left > 0 ? `Try again in ${duration(left)}` : "Try again"}
    </button>
  );
}

/** Keeps the room of a note that is not known yet. */
export const LEGEND_PLACEHOLDER = <span class="reserved">dashed: 28 Sep – 27 Oct 2026</span>;

export function CardTitle({ title, note }: { title: string; note?: ComponentChildren }) {
  return (
    <div class={partsCss.cardTitle}>
      <h2>{title}</h2>
      {note && <p class="quiet small">{note}</p>}
    </div>
  );
}

interface CardProps<T> {
  title: string;
  resource: Resource<T>;
  /** Height of the loaded card's content, in pixels, so that nothing moves when it appears. */
  height: number;
  /** What the title does not say, beside it. */
  note?: ComponentChildren;
  actions?: ComponentChildren;
  /** What can be done besides. */
  menu?: ComponentChildren;
  /** What stands there while nothing is loaded yet, if not a grey area. */
  placeholder?: ComponentChildren;
  /** What stands there if nothing is asked for. */
  idle?: ComponentChildren;
  /** Other requests whose data the card shows. */
  requests?: readonly string[];
  children: (data: T) => ComponentChildren;
}

/** Of a card that is loaded once it comes near the screen. */
export const UNSEEN = <div hidden />;

/** A titled part of a page that loads: first a skeleton, then its data, which stays while newer loads. */
export function Card<T>({
  title,
  resource,
  height,
  note,
  actions,
  menu,
  placeholder = <div class="skeleton" style={{ height: `${height}px` }} />,
  idle,
  requests = [],
  children,
}: CardProps<T>) {
  const { status, data, problem } = resource;
  const urls = [...resource.requests, ...requests];
  const body = useRef<HTMLDivElement>(null);
  const width = useMemo(() => signal(0), []);
  useObservedWidth(body, width);
  return (
    <section class="card" aria-busy={status === "loading"} aria-label={title}>
      <header>
        <CardTitle title={title} note={note} />
        <div class="controls">
          {actions}
          <CardMenu title={title} urls={urls}>
            {menu}
          </CardMenu>
        </div>
      </header>
      <ProblemNotice of={resource} />
      <div ref={body} class={partsCss.cardBody} style={{ minHeight: problem ? "0" : `${height}px` }}>
        <CardWidth.Provider value={width}>
          {data !== undefined ? children(data) : !problem && ((status === "idle" && idle) || placeholder)}
        </CardWidth.Provider>
      </div>
    </section>
  );
}

/** What can be done with a card besides: at least its requests are copied. A client's report has none of its own. */
export function CardMenu({
  title,
  urls,
  children,
}: {
  title: string;
  urls: readonly string[];
  children?: ComponentChildren;
}) {
  if (!children && key.value === null) return null;
  return (
    <Menu label={`More: ${title}`}>
      {children}
      {key.value !== null && (
        <CopyButton label="Copy as curl" text={() => asCurl(urls)} disabled={urls.length === 0} />
      )}
    </Menu>
  );
}

interface WindowMeta {
  start_date: string;
  end_date: string;
  data_as_of: string | null;
}

/** Which days the numbers of a page are of, and how current they are. */
export function WindowNote({ meta }: { meta: WindowMeta | null | undefined }) {
  return (
    <p class={`${partsCss.windowNote} quiet small`}>
      {meta ? (
        <>
          <span>{days(meta.start_date, meta.end_date)} · days in UTC</span>
          <span>{meta.data_as_of ? `data as of ${time(meta.data_as_of)}` : "nothing observed yet"}</span>
        </>
      ) : (
        "\u00a0"
      )}
    </p>
  );
}

/** Instead of a chart of several records. */
export function RangeTooLong() {
  return <Empty>Days are compared in ranges of at most {MAX_SERIES_DAYS} days.</Empty>;
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class={partsCss.empty}>{children}</p>;
}

const STATUSES: Readonly<Record<string, { text: string; tone?: "ok" | "bad"; meaning: string }>> = {
  active: { text: "Active", tone: "ok", meaning: "It is read on schedule." },
  pending: { text: "Waiting", meaning: "It was not read yet. The first read follows within seconds." },
  failing: { text: "Failing", tone: "bad", meaning: "The latest attempt failed. It is tried again." },
  unavailable: { text: "Unavailable", tone: "bad", meaning: "The platform no longer shows it." },
  paused: { text: "Paused", meaning: "Its tracking is paused. Its history stays." },
  paused_by_creator: { text: "Paused by creator", meaning: "Its creator is paused. Its history stays." },
  unsupported: { text: "Unsupported", tone: "bad", meaning: "No configured source can read it." },
  ok: { text: "OK", tone: "ok", meaning: "" },
};

/** A tracking status in words. */
export function Status({ status, title }: { status: string; title?: string | undefined }) {
  const { text, tone, meaning } = STATUSES[status] ?? { text: status.replaceAll("_", " "), meaning: "" };
  return (
    <span class={`status ${tone ?? ""}`} title={title ?? meaning}>
      {text}
    </span>
  );
}

/** What a tracking status means, in a sentence. */
export function statusMeaning(status: string): string {
  return STATUSES[status]?.meaning ?? "";
}

/** A tracking status as a name. */
export function statusName(status: string): string {
  return STATUSES[status]?.text ?? status;
}
