// How a video is tracked, why it does not update, and tracking it individually or not.

import { useState } from "preact/hooks";

import { useAction } from "../../api/action.ts";
import { api, unwrap } from "../../api/client.ts";
import type { components } from "../../api/schema.d.ts";
import { ConfirmDialog } from "../../components/confirm.tsx";
import { Facts } from "../../components/facts.tsx";
import { ProblemNotice, Status, statusMeaning } from "../../components/parts.tsx";
import { RefreshButton } from "../../components/refresh.tsx";
import { time } from "../../format.ts";
import { goTo, linkTo } from "../../state/view.ts";
import * as css from "../video.module.css";

type Content = components["schemas"]["Content"];

interface Props {
  video: Content;
  canWrite: boolean;
  onChanged: () => void;
  /** Loads the video again, in place. */
  onPoll: () => void;
  /** The video has new numbers. */
  onRead: () => void;
}

function howTracked({ kinds, account_username, scrape_interval_hours }: Content): string {
  const alone = `individually, every ${scrape_interval_hours} hours`;
  if (!kinds.includes("discovered")) return alone;
  const found = account_username ? `with @${account_username}` : "with its account";
  return kinds.includes("tracked") ? `${found}, and ${alone}` : found;
}

export function VideoTracking({ video, canWrite, ...actions }: Props) {
  const { tracking } = video;
  return (
    <>
      <p class={css.statusLine}>
        <Status status={tracking.status} /> <span>{statusMeaning(tracking.status)}</span>
      </p>
      {tracking.last_error && <p class={css.reason}>{tracking.last_error}</p>}
      <Facts
        facts={[
          ["Tracked", howTracked(video)],
          ["Last read", time(video.last_scrape_time)],
          ["Last attempt", time(tracking.last_attempt_at)],
          ["Next attempt", time(tracking.next_attempt_at)],
          ["First read", time(video.first_scrape_time)],
        ]}
      />
      {canWrite && <Actions video={video} {...actions} />}
    </>
  );
}

function Actions({ video, onChanged, onPoll, onRead }: Omit<Props, "canWrite">) {
  const [isAsking, setAsking] = useState(false);
  const path = { video_id: video.id };
  const isDiscovered = video.kinds.includes("discovered");
  const identifier = video.url ?? video.external_id ?? video.shortcode;
  const track = useAction(async (signal) => {
    await unwrap(
      api.POST("/videos", { body: { platform: video.platform, identifier: identifier ?? "" }, signal }),
    );
    onChanged();
  });
  const pause = useAction(async (signal) => {
    await unwrap(
      api.PATCH("/videos/{video_id}", { params: { path }, body: { is_active: !video.is_active }, signal }),
    );
    onChanged();
  });
  const untrack = useAction(async (signal) => {
    await unwrap(api.DELETE("/videos/{video_id}", { params: { path }, signal }));
    if (isDiscovered) onChanged();
    else goTo("/content");
  });
  const refresh = async (signal: AbortSignal) =>
    (await unwrap(api.POST("/videos/{video_id}/refresh", { params: { path }, signal }))).data[0] ?? null;
  const actions = [track, pause, untrack];
  const isRunning = actions.some((action) => action.isRunning);
  const failed = actions.find(({ problem }) => problem);
  return (
    <div class={css.videoActions}>
      {failed && !isAsking && <ProblemNotice of={failed} />}
      <div class="controls">
        {video.is_tracked && (
          <RefreshButton record={video} request={refresh} onPoll={onPoll} onRead={onRead} />
        )}
        {!video.is_tracked && (
          <button type="button" disabled={isRunning || !identifier} onClick={() => void track.run()}>
            Track individually
          </button>
        )}
        {video.is_tracked && (
          <button type="button" disabled={isRunning} onClick={() => void pause.run()}>
            {video.is_active ? "Pause tracking" : "Resume tracking"}
          </button>
        )}
        {video.is_tracked && (
          <button
            type="button"
            disabled={isRunning}
            onClick={() => (isDiscovered ? void untrack.run() : setAsking(true))}
          >
            Stop tracking
          </button>
        )}
      </div>
      {isAsking && (
        <ConfirmDialog
          title="Delete this video and its history?"
          action="Delete"
          isRunning={isRunning}
          onConfirm={() => void untrack.run()}
          onClose={() => setAsking(false)}
        >
          <p>It is on no tracked account, so nothing of it stays. This cannot be undone.</p>
          <ProblemNotice of={untrack} />
        </ConfirmDialog>
      )}
    </div>
  );
}

export function accountLink({ account_id, account_username }: Content) {
  return account_id ? (
    <a class="link" href={linkTo(`/accounts/${account_id}`)}>
      @{account_username}
    </a>
  ) : account_username ? (
    `@${account_username}`
  ) : (
    "–"
  );
}
