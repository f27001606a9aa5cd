// What runs first, while the code of the pages is still on its way: restores the session, and starts the requests that the page of
// the address begins with, the most important ones first.

import { fetchIdentity } from "./api/client.ts";
import { PREFETCH } from "./api/prefetch.ts";
import { fetchAccounts } from "./loads/account-rows.ts";
import {
  fetchCollection,
  fetchCollections,
  fetchReportAccounts,
  fetchReportContent,
  fetchReportCreators,
  fetchReportDays,
  fetchReportTotals,
  fetchShare,
} from "./loads/collections.ts";
import { fetchContent } from "./loads/content-rows.ts";
import { fetchCreators } from "./loads/creator-rows.ts";
import { fetchEvents } from "./loads/events.ts";
import { fetchImports } from "./loads/imports.ts";
import { fetchDays, fetchTotals, isSplit, overviewScope } from "./loads/overview.ts";
import {
  fetchBreakouts,
  fetchTopAccounts,
  fetchTopContent,
  fetchTopCreators,
  overviewQueries,
  recordContentQuery,
} from "./loads/rankings.ts";
import {
  fetchAccount,
  fetchBenchmarks,
  fetchCreator,
  fetchCreatorAccounts,
  fetchHistory,
  fetchVideo,
} from "./loads/records.ts";
import { fetchCoverage, fetchNotUpdating, fetchTracking } from "./loads/tracking.ts";
import { key, restoreSession } from "./state/session.ts";
import { followShare, SHARE_PATH, shareToken } from "./state/share.ts";
import { type View, view } from "./state/view.ts";

type Start = (view: View, id: string) => unknown;

function startOverview(view: View): void {
  const queries = overviewQueries(view);
  void fetchDays(view, overviewScope(view), isSplit(view), PREFETCH);
  void fetchTotals(view, overviewScope(view), PREFETCH);
  void fetchTopContent(queries.content, PREFETCH);
  void fetchBreakouts(queries.breakouts, PREFETCH);
  void fetchTopAccounts(queries.accounts, PREFETCH);
  if (queries.creators) void fetchTopCreators(queries.creators, PREFETCH);
  void fetchTracking(PREFETCH);
}

function startCollection(view: View, collection_id: string): void {
  const source = { collection_id };
  void fetchCollection(collection_id, PREFETCH);
  if (view.filters.has("edit")) return;
  void fetchReportTotals(source, view, PREFETCH);
  void fetchReportDays(source, view, PREFETCH);
  void fetchReportContent(source, view, null, PREFETCH);
  void fetchReportAccounts(source, view, null, PREFETCH);
  void fetchReportCreators(source, view, null, PREFETCH);
}

function startRecord(view: View, scope: { account_id: string } | { creator_id: string }): void {
  void fetchDays(view, scope, false, PREFETCH);
  void fetchTotals(view, scope, PREFETCH);
  void fetchTopContent(recordContentQuery(view, scope), PREFETCH);
}

const LISTS: Readonly<Record<string, Start>> = {
  "": startOverview,
  content: (view) => fetchContent(view, null, PREFETCH),
  accounts: (view) => fetchAccounts(view, null, PREFETCH),
  creators: (view) => fetchCreators(view, null, PREFETCH),
  collections: (view) => view.filters.has("edit") || fetchCollections(view, null, PREFETCH),
  events: (view) => fetchEvents(view, null, PREFETCH),
  imports: () => fetchImports(null, PREFETCH),
  tracking: (view) => [
    fetchTracking(PREFETCH),
    fetchNotUpdating(view, PREFETCH),
    fetchCoverage(view, PREFETCH),
  ],
};

const RECORDS: Readonly<Record<string, Start>> = {
  content: (view, id) => [fetchVideo(id, PREFETCH), fetchHistory(id, view, PREFETCH)],
  accounts: (view, id) => [
    fetchAccount(id, PREFETCH),
    startRecord(view, { account_id: id }),
    fetchBenchmarks(id, PREFETCH),
  ],
  creators: (view, id) => [
    fetchCreator(id, PREFETCH),
    startRecord(view, { creator_id: id }),
    fetchCreatorAccounts(id, view, PREFETCH),
  ],
  collections: startCollection,
};

if (view.value.path === SHARE_PATH) {
  followShare();
  if (shareToken.value !== null) void fetchShare(shareToken.value, PREFETCH);
} else restoreSession();
if (key.value !== null) {
  const [, root = "", id = ""] = view.value.path.split("/");
  (id ? RECORDS : LISTS)[root]?.(view.value, id);
  void fetchIdentity(PREFETCH);
}
