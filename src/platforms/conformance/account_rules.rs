//! The rules of reading an account: its identity, paging, depth, values and id; and the rule of the token.

use serde_json::Value;

use super::account_reader::{ACCOUNT_SCHEMA, AccountPages, ReadFailure, Samples, depth_query, first_day};
use super::report::{CheckResult, RuleReport, Verdict, skip};
use super::validating_client::{ContractResponse, ValidatingClient};
use crate::model::counters::Counters;
use crate::model::secret::Secret;
use crate::platforms::coerce;

/// How deep the account is read: enough for several pages, with little load.
const MAX_POSTS: usize = 300;
/// The most invalid values that are reported.
const MAX_REPORTED_VALUES: usize = 4;
/// A username that no account has.
const UNKNOWN_USERNAME: &str = "tm.nobody.of.this.name";

/// The rules that need an existing account.
const ACCOUNT_RULES: [(&str, &str); 7] = [
    ("account", "an account has its profile and a list of posts"),
    ("paging", "`next` leads to the next page and is null on the last; no post appears twice"),
    ("values", "ids, counters, times, durations and `platform_data` are within the bounds of the contract"),
    ("newest", "with a low `max_posts`, the response has the newest posts"),
    ("not-before", "with `not_before`, no post of that day or later is missing"),
    ("account-by-id", "with `id` and the right username, the response is that account"),
    ("rename", "`id` decides whatever the username: the same account or `not_found`, never another account"),
];

/// Checks the rules of accounts, and returns the sample account if it was read to its end.
pub(super) async fn check_accounts(
    client: &mut ValidatingClient<'_>,
    samples: &Samples,
    report: &mut RuleReport,
) -> Option<AccountPages> {
    let unknown =
        client.get(&["accounts", UNKNOWN_USERNAME], &depth_query(9, first_day()), ACCOUNT_SCHEMA).await;
    report.add(
        "unknown-account",
        "an unknown account returns 404 and `not_found`",
        unknown.expect_error("not_found", &["unsupported"]),
    );
    let (results, reason, account) = match &samples.username {
        Some(username) => check_account(client, samples, username).await,
        None => (Vec::new(), "name an account that it has with --username", None),
    };
    let results = results.into_iter().chain(std::iter::repeat_with(|| skip(reason)));
    for ((rule, means), result) in ACCOUNT_RULES.into_iter().zip(results) {
        report.add(rule, means, result);
    }
    account
}

/// Checks an account. Returns the results of the first [`ACCOUNT_RULES`], and why the others are skipped.
async fn check_account(
    client: &mut ValidatingClient<'_>,
    samples: &Samples,
    username: &str,
) -> (Vec<CheckResult>, &'static str, Option<AccountPages>) {
    let unread = "the account was not read to its end";
    let account = match AccountPages::read(client, username, None, MAX_POSTS, first_day()).await {
        Ok(account) => account,
        Err(ReadFailure::FirstPage(reason)) => {
            return (vec![Err(reason), skip("the account was not read")], unread, None);
        }
        Err(ReadFailure::Paging(reason)) => return (vec![Ok(Verdict::Pass), Err(reason)], unread, None),
    };
    let mut results = vec![
        check_identity(&account, username, samples),
        check_paging(&account),
        check_values(&account),
        check_newest(client, username, &account).await,
        check_not_before(client, username, &account).await,
    ];
    if let Some(id) = samples.account_id.clone().or_else(|| account.id()) {
        results.push(check_by_id(client, username, &id).await);
        results.push(check_rename(client, &id).await);
    }
    (results, "no id is known: give one with --id", Some(account))
}

/// Checks that a wrong token is rejected.
pub(super) async fn check_token(client: &mut ValidatingClient<'_>, report: &mut RuleReport) {
    let result = if client.collector.token.is_some() {
        let wrong = Secret::new("not-the-token-of-this-collector");
        let (path, query) = (["accounts", UNKNOWN_USERNAME], depth_query(2, first_day()));
        let response = client.get_with_token(Some(&wrong), &path, &query, ACCOUNT_SCHEMA).await;
        response.expect_error("unauthorized", &[])
    } else {
        skip("no token is given, so none is required")
    };
    report.add("token", "a wrong token returns 401 and `unauthorized`", result);
}

fn check_identity(account: &AccountPages, username: &str, samples: &Samples) -> CheckResult {
    if let Some(found) = coerce::text(account.profile.get("username"))
        && !found.eq_ignore_ascii_case(username)
    {
        return Err(format!("requested @{username}, got @{found}"));
    }
    match (account.id(), &samples.account_id) {
        (Some(id), Some(expected)) if id != *expected => Err(format!("its id is {id} instead of {expected}")),
        (None, Some(expected)) => Err(format!("the profile has no id; it should be {expected}")),
        (None, None) => Ok(Verdict::PassWithRemark(
            "the profile has no id: renames and new owners of a username cannot be detected".to_owned(),
        )),
        _ => Ok(Verdict::Pass),
    }
}

fn check_paging(account: &AccountPages) -> CheckResult {
    if account.has_other_profiles {
        return Err("the profiles of the pages have different ids".to_owned());
    }
    let duplicates = &account.duplicate_ids;
    if let Some(id) = duplicates.first() {
        return Err(format!("{} posts appear more than once, such as {id}", duplicates.len()));
    }
    let posts = account.posts.len();
    Ok(Verdict::PassWithRemark(match account.page_count {
        1 => format!("all {posts} posts are on one page: paging was not checked"),
        pages => format!("{posts} posts on {pages} pages"),
    }))
}

fn check_values(account: &AccountPages) -> CheckResult {
    let mut invalid = Vec::new();
    for name in ["follower_count", "following_count", "post_count"] {
        invalid.extend(invalid_counter(&format!("profile.{name}"), account.profile.get(name)));
    }
    for post in &account.posts {
        let id = coerce::id(post.get("id")).unwrap_or_default();
        for name in Counters::NAMES {
            invalid.extend(invalid_counter(&format!("{name} of post {id}"), post.get(name)));
        }
    }
    for post in &account.posts {
        let id = post.get("id").cloned().unwrap_or_default();
        if coerce::id(Some(&id)).is_none() {
            invalid.push(format!("{id} is not an id: 1 to 128 characters without blanks"));
        }
        let value = |name: &str| post.get(name).filter(|value| !value.is_null());
        if let Some(time) = value("create_time")
            && coerce::time(Some(time)).is_none()
        {
            invalid.push(format!("create_time of post {id} is {time}: not RFC 3339 or Unix seconds"));
        }
        if let Some(duration) = value("duration")
            && coerce::seconds(Some(duration)).is_none()
        {
            invalid.push(format!("duration of post {id} is {duration}: not a number of seconds"));
        }
        if let Some(data) = value("platform_data")
            && data.to_string().len() > coerce::MAX_PLATFORM_DATA_BYTES
        {
            invalid.push(format!("platform_data of post {id} is larger than 16 KiB and will not be stored"));
        }
    }
    let omitted = invalid.len().saturating_sub(MAX_REPORTED_VALUES);
    invalid.truncate(MAX_REPORTED_VALUES);
    match (invalid.is_empty(), omitted) {
        (true, _) => Ok(Verdict::Pass),
        (false, 0) => Err(invalid.join("; ")),
        (false, omitted) => Err(format!("{}; and {omitted} more", invalid.join("; "))),
    }
}

fn invalid_counter(name: &str, value: Option<&Value>) -> Option<String> {
    let value = value.filter(|value| !value.is_null())?;
    let is_valid = coerce::count(Some(value)).is_some_and(|count| count <= Counters::MAX_VALUE);
    (!is_valid).then(|| format!("{name} is {value}: it will be unknown"))
}

async fn check_newest(
    client: &mut ValidatingClient<'_>,
    username: &str,
    account: &AccountPages,
) -> CheckResult {
    let mut posts = account.create_times();
    if posts.len() < 3 {
        return skip("it takes an account with three posts that have a create_time");
    }
    posts.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    let newest = AccountPages::read(client, username, None, 2, first_day()).await?;
    let (found, count) = (newest.post_ids(), newest.posts.len());
    match posts[..2].iter().find(|(id, _)| !found.contains(id)) {
        Some((id, time)) => {
            Err(format!("with max_posts=2, the post {id} of {time} is missing, one of the two newest"))
        }
        None if count > 2 => {
            Ok(Verdict::PassWithRemark(format!("over-delivery: {count} posts with max_posts=2")))
        }
        None => Ok(Verdict::Pass),
    }
}

async fn check_not_before(
    client: &mut ValidatingClient<'_>,
    username: &str,
    account: &AccountPages,
) -> CheckResult {
    let mut posts = account.create_times();
    posts.sort_by_key(|(_, time)| *time);
    let Some((_, middle)) = posts.get(posts.len() / 2) else {
        return skip("it takes an account with posts that have a create_time");
    };
    let day = middle.date_naive();
    let recent = AccountPages::read(client, username, None, MAX_POSTS, day).await?;
    let found = recent.post_ids();
    if let Some((id, time)) = posts.iter().find(|(id, time)| time.date_naive() >= day && !found.contains(id))
    {
        return Err(format!("with not_before={day}, the post {id} of {time} is missing"));
    }
    if recent.has_unread_posts {
        return Err(format!(
            "with not_before={day}, newer posts follow pages of older ones, where the tracker stops reading"
        ));
    }
    let AccountPages { page_count, older_posts, older_pages, .. } = recent;
    if older_posts == 0 {
        return Ok(Verdict::Pass);
    }
    Ok(Verdict::PassWithRemark(format!(
        "over-delivery: with not_before={day}, {older_posts} of {} posts and all posts of {older_pages} of {page_count} \
         pages are older",
        recent.posts.len()
    )))
}

async fn check_by_id(client: &mut ValidatingClient<'_>, username: &str, id: &str) -> CheckResult {
    let found = AccountPages::read(client, username, Some(id), 2, first_day()).await?.id();
    if found.as_deref() == Some(id) {
        Ok(Verdict::Pass)
    } else {
        Err(format!("requested the id {id}, got {}", describe_id(found)))
    }
}

async fn check_rename(client: &mut ValidatingClient<'_>, id: &str) -> CheckResult {
    let mut query = depth_query(2, first_day()).to_vec();
    query.push(("id", id.to_owned()));
    let body = match client.get(&["accounts", UNKNOWN_USERNAME], &query, ACCOUNT_SCHEMA).await {
        ContractResponse::Data(body) => body,
        ContractResponse::Error(code) if code == "not_found" => {
            return Ok(Verdict::PassWithRemark(
                "accounts are looked up by username alone: a renamed account becomes unavailable".to_owned(),
            ));
        }
        other => return Err(other.describe()),
    };
    let found = coerce::id(body.pointer("/profile/id"));
    if found.as_deref() != Some(id) {
        let found = describe_id(found);
        return Err(format!("requested the id {id} with another username, got {found}"));
    }
    match coerce::text(body.pointer("/profile/username")) {
        Some(name) if !name.eq_ignore_ascii_case(UNKNOWN_USERNAME) => Ok(Verdict::Pass),
        _ => Err("the account is found by id, but has no current username".to_owned()),
    }
}

fn describe_id(id: Option<String>) -> String {
    id.map_or("a profile without id".to_owned(), |id| format!("the id {id}"))
}
