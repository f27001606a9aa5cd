//! The rules of reading single posts by each of their names, and of the token.

use chrono::TimeDelta;
use serde_json::{Map, Value};

use super::account_rules::{ACCOUNT, NOBODY, Walk, depth, refused, since_ever};
use super::validating_client::{Asker, Said};
use super::{Collector, Findings, Samples, Verdict};
use crate::model::platform::Platform;
use crate::model::secret::Secret;
use crate::platforms::coerce;

const POST: &str = "PostAnswer";
/// Names that no post has.
const NO_POST: &str = "1";
const NO_SHORTCODE: &str = "TidemarkNone";

/// Posts by each of their names.
pub(super) async fn posts(
    asker: &mut Asker<'_>,
    known: &Samples,
    read: Option<&Walk>,
    findings: &mut Findings,
) {
    let unknown = asker.ask(&["posts"], &[("id", NO_POST.to_owned())], POST).await;
    findings.add(
        "unknown-post",
        "a post that does not exist is answered with 404 and `not_found`",
        refused(&unknown, &["not_found", "unsupported"]),
    );
    let listed = read.and_then(|walk| walk.posts.first());
    let id = known.post_id.clone().or_else(|| coerce::id(listed?.get("id")));
    let verdict = one_post(asker, "id", id.as_deref(), listed).await;
    findings.add(
        "post-by-id",
        "a post is found by the platform's id, as it stands in its account's list",
        verdict,
    );
    let means = "a post is found by its shortcode, and one that no post has is answered with `not_found`";
    if asker.platform() == Platform::Tiktok {
        let verdict = Verdict::Untried("posts of TikTok have no shortcodes".to_owned());
        return findings.add("post-by-shortcode", means, verdict);
    }
    let code = known.shortcode.clone().or_else(|| coerce::id(listed?.get("shortcode")));
    let verdict = match one_post(asker, "shortcode", code.as_deref(), listed).await {
        Verdict::Kept => {
            let nobody = asker.ask(&["posts"], &[("shortcode", NO_SHORTCODE.to_owned())], POST).await;
            refused(&nobody, &["not_found"])
        }
        other => other,
    };
    findings.add("post-by-shortcode", means, verdict);
}

async fn one_post(
    asker: &mut Asker<'_>,
    by: &'static str,
    name: Option<&str>,
    listed: Option<&Map<String, Value>>,
) -> Verdict {
    let Some(name) = name else {
        let option = if by == "id" { "--post" } else { "--shortcode" };
        return Verdict::Untried(format!("name a post that it has with {option}"));
    };
    let said = asker.ask(&["posts"], &[(by, name.to_owned())], POST).await;
    let post = match said {
        Said::Good(answer) => answer.get("post").and_then(Value::as_object).cloned().unwrap_or_default(),
        Said::No(code) if code == "unsupported" => {
            return Verdict::But(format!(
                "it cannot look posts up by {by}: another source of the list has to"
            ));
        }
        other => return Verdict::Broken(other.in_words()),
    };
    let same = |field: &str| match (
        coerce::id(post.get(field)),
        listed.and_then(|listed| coerce::id(listed.get(field))),
    ) {
        (Some(said), Some(listed)) => said == listed,
        _ => true,
    };
    let told = coerce::id(post.get(by));
    if told.as_deref().is_some_and(|told| told != name) || (by == "id" && told.is_none()) {
        return Verdict::Broken(format!(
            "asked for {name}, it answers the post {}",
            told.unwrap_or_default()
        ));
    }
    let is_listed = listed.is_some_and(|listed| coerce::id(listed.get(by)).as_deref() == Some(name));
    let times = [Some(&post), listed].map(|post| post.and_then(|post| coerce::time(post.get("create_time"))));
    let apart = match times {
        [Some(one), Some(other)] => (one - other).abs() > TimeDelta::seconds(1),
        _ => false,
    };
    if is_listed && (!same("id") || !same("shortcode") || apart) {
        return Verdict::Broken(format!(
            "the post {name} differs from the one in its account's list: id, shortcode or create_time"
        ));
    }
    Verdict::Kept
}

/// A token that is not the collector's.
pub(super) async fn token(asker: &mut Asker<'_>, collector: &Collector, findings: &mut Findings) {
    let verdict = if collector.token.is_some() {
        let wrong = Secret::new("not-the-token-of-this-collector");
        let said = asker.ask_as(Some(&wrong), &["accounts", NOBODY], &depth(2, since_ever()), ACCOUNT).await;
        refused(&said, &["unauthorized"])
    } else {
        Verdict::Untried("no token is given, so none is asked for".to_owned())
    };
    findings.add("token", "a wrong token is answered with 401 and `unauthorized`", verdict);
}
