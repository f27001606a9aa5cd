//! The rules of reading single posts, by id and by shortcode.

use chrono::TimeDelta;
use serde_json::{Map, Value};

use super::account_reader::{AccountPages, Samples};
use super::report::{CheckResult, RuleReport, Verdict, skip};
use super::validating_client::{ContractResponse, ValidatingClient};
use crate::model::platform::Platform;
use crate::platforms::coerce;

const POST_SCHEMA: &str = "PostResponse";
/// An id and a shortcode that no post has.
const UNKNOWN_ID: &str = "1";
const UNKNOWN_SHORTCODE: &str = "TidemarkNone";
/// How much `create_time` may differ between the post and the account's list.
const CREATE_TIME_TOLERANCE: TimeDelta = TimeDelta::seconds(1);

pub(super) async fn check_posts(
    client: &mut ValidatingClient<'_>,
    samples: &Samples,
    account: Option<&AccountPages>,
    report: &mut RuleReport,
) {
    let unknown = client.get(&["posts"], &[("id", UNKNOWN_ID.to_owned())], POST_SCHEMA).await;
    report.add(
        "unknown-post",
        "an unknown post returns 404 and `not_found`",
        unknown.expect_error("not_found", &["unsupported"]),
    );
    let listed = account.and_then(|account| account.posts.first());
    let id = samples.post_id.clone().or_else(|| coerce::id(listed?.get("id")));
    report.add(
        "post-by-id",
        "a post is found by the platform's id, equal to that in the account's list",
        check_post(client, "id", id.as_deref(), listed).await,
    );

    let means = "a post is found by its shortcode; an unknown shortcode returns `not_found`";
    if client.platform() == Platform::Tiktok {
        return report.add("post-by-shortcode", means, skip("posts of TikTok have no shortcodes"));
    }
    let code = samples.shortcode.clone().or_else(|| coerce::id(listed?.get("shortcode")));
    let mut result = check_post(client, "shortcode", code.as_deref(), listed).await;
    if matches!(result, Ok(Verdict::Pass)) {
        let query = [("shortcode", UNKNOWN_SHORTCODE.to_owned())];
        result = client.get(&["posts"], &query, POST_SCHEMA).await.expect_error("not_found", &[]);
    }
    report.add("post-by-shortcode", means, result);
}

/// Reads a post by one of its keys, `id` or `shortcode`, and compares it with the account's list.
async fn check_post(
    client: &mut ValidatingClient<'_>,
    key: &'static str,
    value: Option<&str>,
    listed: Option<&Map<String, Value>>,
) -> CheckResult {
    let Some(value) = value else {
        let option = if key == "id" { "--post" } else { "--shortcode" };
        return skip(&format!("name a post that it has with {option}"));
    };
    let body = match client.get(&["posts"], &[(key, value.to_owned())], POST_SCHEMA).await {
        ContractResponse::Data(body) => body,
        ContractResponse::Error(code) if code == "unsupported" => {
            return Ok(Verdict::PassWithRemark(format!(
                "posts cannot be looked up by {key}: configure another source that can"
            )));
        }
        other => return Err(other.describe()),
    };
    let post = body.get("post").and_then(Value::as_object).cloned().unwrap_or_default();
    let found = coerce::id(post.get(key));
    let is_other = found.as_deref().map_or(key == "id", |found| found != value);
    if is_other {
        return Err(format!("requested {value}, got the post {}", found.unwrap_or_default()));
    }
    match listed.filter(|listed| coerce::id(listed.get(key)).as_deref() == Some(value)) {
        Some(listed) if differs(&post, listed) => Err(format!(
            "the post {value} differs from the one in its account's list: id, shortcode or create_time"
        )),
        _ => Ok(Verdict::Pass),
    }
}

/// Whether two versions of a post disagree on a field that both have.
fn differs(post: &Map<String, Value>, listed: &Map<String, Value>) -> bool {
    let has_other_key = ["id", "shortcode"].into_iter().any(|key| {
        let ids = (coerce::id(post.get(key)), coerce::id(listed.get(key)));
        matches!(ids, (Some(a), Some(b)) if a != b)
    });
    let times = (coerce::time(post.get("create_time")), coerce::time(listed.get("create_time")));
    has_other_key || matches!(times, (Some(a), Some(b)) if (a - b).abs() > CREATE_TIME_TOLERANCE)
}
