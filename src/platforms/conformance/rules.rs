//! The rules of single operations: reading an account, its paging and depth, posts by each of their names, what is
//! not there, and the token.

use std::collections::BTreeSet;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde_json::{Map, Value};

use super::asker::{Asker, Said};
use super::{Collector, Findings, Known, Verdict};
use crate::model::counters::Counters;
use crate::model::platform::Platform;
use crate::model::secret::Secret;
use crate::platforms::lenient;

const ACCOUNT: &str = "AccountAnswer";
const POST: &str = "PostAnswer";
/// How far the account is read: enough to see pages, not enough to be a burden.
const MOST_POSTS: usize = 300;
const MOST_PAGES: usize = 40;
/// The largest `platform_data` that is kept, in bytes.
const MAX_PLATFORM_DATA: usize = 16 * 1024;
/// Names that nobody has.
const NOBODY: &str = "tm.nobody.of.this.name";
const NO_POST: &str = "1";
const NO_SHORTCODE: &str = "TidemarkNone";

/// An account as it was read, page by page.
struct Walk {
    profile: Map<String, Value>,
    posts: Vec<Map<String, Value>>,
    pages: usize,
    /// Ids that came more than once.
    twice: BTreeSet<String>,
    /// Whether pages spoke of different accounts.
    strayed: bool,
    /// The most posts that one answer held.
    largest: usize,
}

impl Walk {
    fn id(&self) -> Option<String> {
        lenient::id(self.profile.get("id"))
    }

    /// The posts whose id and time can be read.
    fn timed(&self) -> Vec<(String, DateTime<Utc>)> {
        let read = |post: &Map<String, Value>| {
            Some((lenient::id(post.get("id"))?, lenient::time(post.get("create_time"))?))
        };
        self.posts.iter().filter_map(read).collect()
    }
}

/// Why a walk did not come to its end.
enum Lost {
    Account(String),
    Paging(String),
}

async fn walk(
    asker: &mut Asker<'_>,
    username: &str,
    id: Option<&str>,
    max_posts: usize,
    not_before: NaiveDate,
) -> Result<Walk, Lost> {
    let mut found: Option<Walk> = None;
    let mut cursors = BTreeSet::new();
    let mut seen = BTreeSet::new();
    loop {
        let posts = found.as_ref().map_or(0, |walk| walk.posts.len());
        let mut query = vec![
            ("max_posts", max_posts.saturating_sub(posts).to_string()),
            ("not_before", not_before.to_string()),
        ];
        query.extend(id.map(|id| ("id", id.to_owned())));
        let pages = found.as_ref().map_or(0, |walk| walk.pages);
        query.extend(cursors.last().map(|(_, cursor): &(usize, String)| ("cursor", cursor.clone())));
        let page = match asker.ask(&["accounts", username], &query, ACCOUNT).await {
            Said::Good(page) => page,
            other if pages == 0 => return Err(Lost::Account(other.in_words())),
            other => return Err(Lost::Paging(format!("page {}: {}", pages + 1, other.in_words()))),
        };
        let profile = page.get("profile").and_then(Value::as_object).cloned().unwrap_or_default();
        let rows: Vec<_> =
            page.get("posts").and_then(Value::as_array).into_iter().flatten().cloned().collect();
        let walk = found.get_or_insert_with(|| Walk {
            profile: profile.clone(),
            posts: Vec::new(),
            pages: 0,
            twice: BTreeSet::new(),
            strayed: false,
            largest: 0,
        });
        walk.pages += 1;
        walk.largest = walk.largest.max(rows.len());
        walk.strayed |= lenient::id(profile.get("id")) != walk.id();
        for row in rows {
            let Value::Object(post) = row else { continue };
            if let Some(id) = lenient::id(post.get("id"))
                && !seen.insert(id.clone())
            {
                walk.twice.insert(id);
            }
            walk.posts.push(post);
        }
        let next = lenient::filled_text(page.get("next"));
        let Some(next) = next.filter(|_| walk.posts.len() < max_posts) else { break };
        if cursors.iter().any(|(_, known)| *known == next) {
            return Err(Lost::Paging(format!("page {} leads back to the cursor \"{next}\"", walk.pages)));
        }
        if walk.pages == MOST_PAGES {
            return Err(Lost::Paging(format!(
                "there is no end after {MOST_PAGES} pages with {} posts: make the pages larger",
                walk.posts.len()
            )));
        }
        cursors.insert((walk.pages, next));
    }
    found.ok_or_else(|| Lost::Account("no answer".to_owned()))
}

fn since_ever() -> NaiveDate {
    NaiveDate::from_ymd_opt(2010, 1, 1).unwrap_or_default()
}

pub(super) async fn accounts(asker: &mut Asker<'_>, known: &Known, findings: &mut Findings) {
    let unknown = asker.ask(&["accounts", NOBODY], &depth(9, since_ever()), ACCOUNT).await;
    findings.add(
        "unknown-account",
        "an account that does not exist is answered with 404 and `not_found`",
        refused(&unknown, &["not_found", "unsupported"]),
    );
    let Some(username) = &known.username else {
        for (rule, means) in OF_AN_ACCOUNT {
            findings.add(
                rule,
                means,
                Verdict::Untried("name an account that it has with --username".to_owned()),
            );
        }
        return posts(asker, known, None, findings).await;
    };
    let read = walk(asker, username, None, MOST_POSTS, since_ever()).await;
    let means =
        |rule: &str| OF_AN_ACCOUNT.iter().find(|(name, _)| *name == rule).map_or("", |(_, means)| means);
    let mut add = |rule: &'static str, verdict| findings.add(rule, means(rule), verdict);
    let walk = match read {
        Ok(walk) => walk,
        Err(lost) => {
            let (account, paging) = match lost {
                Lost::Account(why) => {
                    (Verdict::Broken(why), Verdict::Untried("the account was not read".to_owned()))
                }
                Lost::Paging(why) => (Verdict::Kept, Verdict::Broken(why)),
            };
            add("account", account);
            add("paging", paging);
            for (rule, _) in OF_AN_ACCOUNT.iter().skip(2) {
                add(rule, Verdict::Untried("the account was not read to its end".to_owned()));
            }
            return posts(asker, known, None, findings).await;
        }
    };
    add("account", identity(&walk, username, known));
    add("paging", paging(&walk));
    add("values", values(&walk));
    add("newest", newest(asker, username, &walk).await);
    add("not-before", not_before(asker, username, &walk).await);
    let id = known.id.clone().or_else(|| walk.id());
    add("account-by-id", by_id(asker, username, id.as_deref()).await);
    add("rename", rename(asker, id.as_deref()).await);
    posts(asker, known, Some(&walk), findings).await;
}

/// What is checked of an account that is known to be there.
const OF_AN_ACCOUNT: [(&str, &str); 7] = [
    ("account", "an account is answered with its profile and a list of posts"),
    ("paging", "`next` leads to the following page and is null on the last; no post comes twice"),
    ("values", "counters, times, ids and `platform_data` are within the contract's bounds"),
    ("newest", "with few posts wanted, the newest are answered"),
    ("not-before", "with `not_before`, no post of that day or after it is missing"),
    ("account-by-id", "with `id` and the right username, that account is answered"),
    ("rename", "`id` decides whatever the username: the same account, or `not_found`, never another one"),
];

fn depth(max_posts: usize, not_before: NaiveDate) -> [(&'static str, String); 2] {
    [("max_posts", max_posts.to_string()), ("not_before", not_before.to_string())]
}

fn refused(said: &Said, codes: &[&str]) -> Verdict {
    match said {
        Said::No(code) if code == codes[0] => Verdict::Kept,
        Said::No(code) if codes.contains(&code.as_str()) => Verdict::But(format!("it answers `{code}`")),
        other => Verdict::Broken(other.in_words()),
    }
}

fn identity(walk: &Walk, username: &str, known: &Known) -> Verdict {
    let said = lenient::text(walk.profile.get("username"));
    if said.as_ref().is_some_and(|said| !said.eq_ignore_ascii_case(username)) {
        return Verdict::Broken(format!("asked for @{username}, it answers @{}", said.unwrap_or_default()));
    }
    match (walk.id(), &known.id) {
        (Some(id), Some(meant)) if id != *meant => {
            Verdict::Broken(format!("its id is {id} instead of {meant}"))
        }
        (None, Some(meant)) => Verdict::Broken(format!("the profile has no id; it should be {meant}")),
        (None, None) => Verdict::But(
            "the profile has no id: a rename cannot be followed, nor a new owner of the name be noticed"
                .to_owned(),
        ),
        _ => Verdict::Kept,
    }
}

fn paging(walk: &Walk) -> Verdict {
    if walk.strayed {
        return Verdict::Broken("the pages name different profile ids".to_owned());
    }
    if let Some(id) = walk.twice.first() {
        return Verdict::Broken(format!("the post {id} comes more than once, and {} do", walk.twice.len()));
    }
    let (posts, pages) = (walk.posts.len(), walk.pages);
    match pages {
        1 => Verdict::But(format!("all {posts} posts came on one page, so paging was not seen")),
        _ => Verdict::But(format!("{posts} posts on {pages} pages")),
    }
}

fn values(walk: &Walk) -> Verdict {
    let mut faults = Vec::new();
    let mut counter = |place: String, value: Option<&Value>| {
        if let Some(value) = value.filter(|value| !value.is_null())
            && lenient::count(Some(value)).is_none_or(|count| count > Counters::MAX)
        {
            faults.push(format!("{place} is {value}: it will count as unknown"));
        }
    };
    for name in ["follower_count", "following_count", "post_count"] {
        counter(format!("profile.{name}"), walk.profile.get(name));
    }
    for post in &walk.posts {
        let id = lenient::id(post.get("id")).unwrap_or_default();
        for name in Counters::NAMES {
            counter(format!("{name} of post {id}"), post.get(name));
        }
    }
    for post in &walk.posts {
        let given = post.get("id").cloned().unwrap_or_default();
        if lenient::id(Some(&given)).is_none() {
            faults.push(format!("{given} is no id: 1 to 128 characters without blanks"));
        }
        let stated = |name: &str| post.get(name).filter(|value| !value.is_null());
        if let Some(time) = stated("create_time")
            && lenient::time(Some(time)).is_none()
        {
            faults.push(format!("create_time of post {given} is {time}: RFC 3339, or seconds since 1970"));
        }
        if let Some(duration) = stated("duration")
            && lenient::seconds(Some(duration)).is_none()
        {
            faults.push(format!("duration of post {given} is {duration}: seconds, not negative"));
        }
        if let Some(data) = stated("platform_data")
            && data.to_string().len() > MAX_PLATFORM_DATA
        {
            faults.push(format!("platform_data of post {given} is larger than 16 KiB and will not be kept"));
        }
    }
    let more = faults.len().saturating_sub(4);
    faults.truncate(4);
    match (faults.is_empty(), more) {
        (true, _) => Verdict::Kept,
        (false, 0) => Verdict::Broken(faults.join("; ")),
        (false, more) => Verdict::Broken(format!("{}; and {more} more", faults.join("; "))),
    }
}

async fn newest(asker: &mut Asker<'_>, username: &str, read: &Walk) -> Verdict {
    let mut posts = read.timed();
    if posts.len() < 3 {
        return Verdict::Untried("it takes an account with three posts whose create_time is told".to_owned());
    }
    posts.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    match walk(asker, username, None, 2, since_ever()).await {
        Ok(few) => {
            let few: BTreeSet<_> = few.posts.iter().filter_map(|post| lenient::id(post.get("id"))).collect();
            match posts[..2].iter().find(|(id, _)| !few.contains(id)) {
                Some((id, time)) => Verdict::Broken(format!(
                    "with max_posts=2, the post {id} of {time} is missing, though no other two are newer"
                )),
                None => Verdict::Kept,
            }
        }
        Err(Lost::Account(why) | Lost::Paging(why)) => Verdict::Broken(why),
    }
}

async fn not_before(asker: &mut Asker<'_>, username: &str, read: &Walk) -> Verdict {
    let mut posts = read.timed();
    posts.sort_by_key(|(_, time)| *time);
    let Some((_, middle)) = posts.get(posts.len() / 2) else {
        return Verdict::Untried("it takes an account with posts whose create_time is told".to_owned());
    };
    let day = middle.date_naive();
    match walk(asker, username, None, MOST_POSTS, day).await {
        Ok(recent) => {
            let recent: BTreeSet<_> =
                recent.posts.iter().filter_map(|post| lenient::id(post.get("id"))).collect();
            let missing =
                |(id, time): &&(String, DateTime<Utc>)| time.date_naive() >= day && !recent.contains(id);
            match posts.iter().find(missing) {
                Some((id, time)) => {
                    Verdict::Broken(format!("with not_before={day}, the post {id} of {time} is missing"))
                }
                None => Verdict::Kept,
            }
        }
        Err(Lost::Account(why) | Lost::Paging(why)) => Verdict::Broken(why),
    }
}

async fn by_id(asker: &mut Asker<'_>, username: &str, id: Option<&str>) -> Verdict {
    let Some(id) = id else { return Verdict::Untried("no id is known: give one with --id".to_owned()) };
    match walk(asker, username, Some(id), 2, since_ever()).await {
        Ok(walk) if walk.id().as_deref() == Some(id) => Verdict::Kept,
        Ok(walk) => Verdict::Broken(format!(
            "asked for the id {id}, it answers {}",
            walk.id().map_or("no id".to_owned(), |id| format!("the id {id}"))
        )),
        Err(Lost::Account(why) | Lost::Paging(why)) => Verdict::Broken(why),
    }
}

async fn rename(asker: &mut Asker<'_>, id: Option<&str>) -> Verdict {
    let Some(id) = id else { return Verdict::Untried("no id is known: give one with --id".to_owned()) };
    let mut query = depth(2, since_ever()).to_vec();
    query.push(("id", id.to_owned()));
    match asker.ask(&["accounts", NOBODY], &query, ACCOUNT).await {
        Said::Good(answer) => {
            let said = answer.get("profile").and_then(|profile| lenient::id(profile.get("id")));
            let name = answer.get("profile").and_then(|profile| lenient::text(profile.get("username")));
            match (said, name) {
                (Some(said), Some(name)) if said == id && !name.eq_ignore_ascii_case(NOBODY) => Verdict::Kept,
                (Some(said), _) if said == id => Verdict::Broken(
                    "it finds the account by its id but does not say its username of now".to_owned(),
                ),
                (said, _) => Verdict::Broken(format!(
                    "asked for the id {id} under another username, it answers {}",
                    said.map_or("a profile without id".to_owned(), |id| format!("the id {id}"))
                )),
            }
        }
        Said::No(code) if code == "not_found" => Verdict::But(
            "it looks up by username alone: an account that is renamed turns unavailable".to_owned(),
        ),
        other => Verdict::Broken(other.in_words()),
    }
}

/// Posts by each of their names.
async fn posts(asker: &mut Asker<'_>, known: &Known, read: Option<&Walk>, findings: &mut Findings) {
    let unknown = asker.ask(&["posts"], &[("id", NO_POST.to_owned())], POST).await;
    findings.add(
        "unknown-post",
        "a post that does not exist is answered with 404 and `not_found`",
        refused(&unknown, &["not_found", "unsupported"]),
    );
    let listed = read.and_then(|walk| walk.posts.first());
    let id = known.post.clone().or_else(|| lenient::id(listed?.get("id")));
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
    let code = known.shortcode.clone().or_else(|| lenient::id(listed?.get("shortcode")));
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
        lenient::id(post.get(field)),
        listed.and_then(|listed| lenient::id(listed.get(field))),
    ) {
        (Some(said), Some(listed)) => said == listed,
        _ => true,
    };
    let told = lenient::id(post.get(by));
    if told.as_deref().is_some_and(|told| told != name) || (by == "id" && told.is_none()) {
        return Verdict::Broken(format!(
            "asked for {name}, it answers the post {}",
            told.unwrap_or_default()
        ));
    }
    let is_listed = listed.is_some_and(|listed| lenient::id(listed.get(by)).as_deref() == Some(name));
    let times =
        [Some(&post), listed].map(|post| post.and_then(|post| lenient::time(post.get("create_time"))));
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
