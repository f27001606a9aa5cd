// How a video is tracked, why it does not update, and tracking it individually or not.

import { useRef, useState } from "preact/hooks";

import { ApiProblem, api, unwrap } from "../api/client.ts";
import type { components } from "../api/schema.d.ts";
import { time } from "../format.ts";
import { linkTo, navigate } from "../state/view.ts";
import { Facts } from "./facts.tsx";
import { ProblemNotice, Status, statusMeaning } from "./parts.tsx";

type Content = components["schemas"]["Content"];

interface Props {
  video: Content;
  canWrite: boolean;
  onChanged: () => void;
}

function howTracked({ kinds, account_username, scrape_interval_hours }: Content): string {
  const alone = `individually, every ${scrape_interval_hours} hours`;
  if (!kinds.includes("discovered")) return alone;
  const found = account_username ? `with @${account_username}` : "with its account";
  return kinds.includes("tracked") ? `${found}, and ${alone}` : found;
}

export function VideoTracking({ video, canWrite, onChanged }: Props) {
  const { tracking } = video;
  return (
    <>
      <p class="status-line"><Status status={tracking.status} /> <span>{statusMeaning(tracking.status)}</span></p>
      {tracking.last_error && <p class="reason">{tracking.last_error}</p>}
      <Facts facts={[
        ["Tracked", howTracked(video)],
        ["Last read", time(video.last_scrape_time)],
        ["Last attempt", time(tracking.last_attempt_at)],
        ["Next attempt", time(tracking.next_attempt_at)],
        ["First read", time(video.first_scrape_time)],
      ]} />
      {canWrite && <Actions video={video} onChanged={onChanged} />}
    </>
  );
}

function Actions({ video, onChanged }: Omit<Props, "canWrite">) {
  const [problem, setProblem] = useState<ApiProblem | null>(null);
  const [isRunning, setRunning] = useState(false);
  const confirmation = useRef<HTMLDialogElement>(null);
  const path = { video_id: video.id };
  const isDiscovered = video.kinds.includes("discovered");
  const identifier = video.url ?? video.external_id ?? video.shortcode;
  const run = async (action: () => Promise<unknown>) => {
    setRunning(true);
    setProblem(null);
    try {
      await action();
    } catch (cause) {
      setProblem(cause instanceof ApiProblem ? cause : new ApiProblem(0, { detail: String(cause) }));
    }
    setRunning(false);
  };
  const track = () => run(async () => {
    await unwrap(api.POST("/videos", { body: { platform: video.platform, identifier: identifier ?? "" } }));
    onChanged();
  });
  const pause = () => run(async () => {
    await unwrap(api.PATCH("/videos/{video_id}", { params: { path }, body: { is_active: !video.is_active } }));
    onChanged();
  });
  const untrack = () => run(async () => {
    await unwrap(api.DELETE("/videos/{video_id}", { params: { path } }));
    if (isDiscovered) onChanged();
    else navigate({ path: "/content", filters: new Map() });
  });
  return (
    <div class="video-actions">
      {problem && <ProblemNotice problem={problem} retry={() => setProblem(null)} />}
      <div class="controls">
        {!video.is_tracked && <button type="button" disabled={isRunning || !identifier} onClick={track}>Track individually</button>}
        {video.is_tracked && <button type="button" disabled={isRunning} onClick={pause}>{video.is_active ? "Pause" : "Resume"}</button>}
        {video.is_tracked && <button type="button" disabled={isRunning} onClick={() => (isDiscovered ? untrack() : confirmation.current?.showModal())}>Stop tracking</button>}
      </div>
      {!isDiscovered && <dialog ref={confirmation} class="confirmation" aria-labelledby="confirm-title">
        <form method="dialog">
          <h2 id="confirm-title">Delete this video and its history?</h2>
          <p>It is on no tracked account, so nothing of it stays. This cannot be undone.</p>
          <div class="controls">
            <button value="cancel" autofocus>Keep it</button>
            <button value="delete" class="danger" onClick={untrack}>Delete</button>
          </div>
        </form>
      </dialog>}
    </div>
  );
}

export function accountLink({ account_id, account_username }: Content) {
  return account_id ? <a class="link" href={linkTo(`/accounts/${account_id}`)}>@{account_username}</a> : account_username ? `@${account_username}` : "–";
}
