// What runs first, while the code of the pages is still on its way: restores the session, and starts the requests that the page of
// the address begins with, the most important ones first.

import { AHEAD } from "./api/ahead.ts";
import { fetchIdentity } from "./api/client.ts";
import { fetchAccounts } from "./components/account-rows.ts";
import { fetchContent } from "./components/content-rows.ts";
import { fetchCreators } from "./components/creator-rows.ts";
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
  fetchCounters,
  fetchCreator,
  fetchCreatorAccounts,
  fetchHistory,
  fetchVideo,
} from "./loads/records.ts";
import { fetchCategories, fetchCoverage, fetchNotUpdating, fetchTracking } from "./loads/tracking.ts";
import { key, restoreSession } from "./state/session.ts";
import { type View, view } from "./state/view.ts";

type Start = (view: View, id: string) => unknown;

function startOverview(view: View): void {
  const queries = overviewQueries(view);
  void fetchDays(view, overviewScope(view), isSplit(view), AHEAD);
  void fetchTotals(view, overviewScope(view), AHEAD);
  void fetchTopContent(queries.content, AHEAD);
  void fetchBreakouts(queries.breakouts, AHEAD);
  void fetchTopAccounts(queries.accounts, AHEAD);
  void fetchTopCreators(queries.creators, AHEAD);
  void fetchTracking(AHEAD);
}

function startRecord(view: View, scope: { account_id: string } | { creator_id: string }): void {
  void fetchDays(view, scope, false, AHEAD);
  void fetchTotals(view, scope, AHEAD);
  void fetchTopContent(recordContentQuery(view, scope), AHEAD);
}

const LISTS: Readonly<Record<string, Start>> = {
  "": startOverview,
  content: (view) => fetchContent(view, null, AHEAD, () => {}),
  accounts: (view) => [fetchAccounts(view, null, AHEAD), fetchCategories(AHEAD)],
  creators: (view) => fetchCreators(view, null, AHEAD),
  tracking: (view) => [fetchTracking(AHEAD), fetchNotUpdating(AHEAD), fetchCoverage(view, AHEAD)],
};

const RECORDS: Readonly<Record<string, Start>> = {
  content: (view, id) => [fetchVideo(id, AHEAD), fetchCounters(id, AHEAD), fetchHistory(id, view, AHEAD)],
  accounts: (view, id) => [
    fetchAccount(id, AHEAD),
    startRecord(view, { account_id: id }),
    fetchBenchmarks(id, AHEAD),
  ],
  creators: (view, id) => [
    fetchCreator(id, AHEAD),
    startRecord(view, { creator_id: id }),
    fetchCreatorAccounts(id, view, AHEAD),
  ],
};

restoreSession();
if (key.value !== null) {
  const [, root = "", id = ""] = view.value.path.split("/");
  (id ? RECORDS : LISTS)[root]?.(view.value, id);
  void fetchIdentity(AHEAD);
}
