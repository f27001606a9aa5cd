//! The rules of reading an account: who it is, its paging and depth, its values, and its id. Those of single posts and
//! of the token stand in `posts`.

use std::collections::BTreeSet;

use chrono::{DateTime, NaiveDate, Utc};
use serde_json::{Map, Value};

use super::post_rules::posts;
use super::validating_client::{Asker, Said};
use super::{Findings, Samples, Verdict};
use crate::model::counters::Counters;
use crate::platforms::coerce;

pub(super) const ACCOUNT: &str = "AccountAnswer";
/// How far the account is read: enough to see pages, not enough to be a burden.
const MOST_POSTS: usize = 300;
const MOST_PAGES: usize = 40;
/// The largest `platform_data` that is kept, in bytes.
const MAX_PLATFORM_DATA: usize = 16 * 1024;
/// A name that nobody has.
pub(super) const NOBODY: &str = "tm.nobody.of.this.name";

/// An account as it was read, page by page.
pub(super) struct Walk {
    profile: Map<String, Value>,
    pub(super) posts: Vec<Map<String, Value>>,
    pages: usize,
    /// Ids that came more than once.
    twice: BTreeSet<String>,
    /// Whether pages spoke of different accounts.
    strayed: bool,
}

impl Walk {
    fn id(&self) -> Option<String> {
        coerce::id(self.profile.get("id"))
    }

    /// The posts whose id and time can be read.
    fn timed(&self) -> Vec<(String, DateTime<Utc>)> {
        let read = |post: &Map<String, Value>| {
            Some((coerce::id(post.get("id"))?, coerce::time(post.get("create_time"))?))
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
        });
        walk.pages += 1;
        walk.strayed |= coerce::id(profile.get("id")) != walk.id();
        for row in rows {
            let Value::Object(post) = row else { continue };
            if let Some(id) = coerce::id(post.get("id"))
                && !seen.insert(id.clone())
            {
                walk.twice.insert(id);
            }
            walk.posts.push(post);
        }
        let next = coerce::non_empty_text(page.get("next"));
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

pub(super) fn since_ever() -> NaiveDate {
    NaiveDate::from_ymd_opt(2010, 1, 1).unwrap_or_default()
}

pub(super) async fn accounts(asker: &mut Asker<'_>, known: &Samples, findings: &mut Findings) {
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
    let id = known.account_id.clone().or_else(|| walk.id());
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

pub(super) fn depth(max_posts: usize, not_before: NaiveDate) -> [(&'static str, String); 2] {
    [("max_posts", max_posts.to_string()), ("not_before", not_before.to_string())]
}

pub(super) fn refused(said: &Said, codes: &[&str]) -> Verdict {
    match said {
        Said::No(code) if code == codes[0] => Verdict::Kept,
        Said::No(code) if codes.contains(&code.as_str()) => Verdict::But(format!("it answers `{code}`")),
        other => Verdict::Broken(other.in_words()),
    }
}

fn identity(walk: &Walk, username: &str, known: &Samples) -> Verdict {
    let said = coerce::text(walk.profile.get("username"));
    if said.as_ref().is_some_and(|said| !said.eq_ignore_ascii_case(username)) {
        return Verdict::Broken(format!("asked for @{username}, it answers @{}", said.unwrap_or_default()));
    }
    match (walk.id(), &known.account_id) {
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
            && coerce::count(Some(value)).is_none_or(|count| count > Counters::MAX)
        {
            faults.push(format!("{place} is {value}: it will count as unknown"));
        }
    };
    for name in ["follower_count", "following_count", "post_count"] {
        counter(format!("profile.{name}"), walk.profile.get(name));
    }
    for post in &walk.posts {
        let id = coerce::id(post.get("id")).unwrap_or_default();
        for name in Counters::NAMES {
            counter(format!("{name} of post {id}"), post.get(name));
        }
    }
    for post in &walk.posts {
        let given = post.get("id").cloned().unwrap_or_default();
        if coerce::id(Some(&given)).is_none() {
            faults.push(format!("{given} is no id: 1 to 128 characters without blanks"));
        }
        let stated = |name: &str| post.get(name).filter(|value| !value.is_null());
        if let Some(time) = stated("create_time")
            && coerce::time(Some(time)).is_none()
        {
            faults.push(format!("create_time of post {given} is {time}: RFC 3339, or seconds since 1970"));
        }
        if let Some(duration) = stated("duration")
            && coerce::seconds(Some(duration)).is_none()
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
            let few: BTreeSet<_> = few.posts.iter().filter_map(|post| coerce::id(post.get("id"))).collect();
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
                recent.posts.iter().filter_map(|post| coerce::id(post.get("id"))).collect();
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
            let said = answer.get("profile").and_then(|profile| coerce::id(profile.get("id")));
            let name = answer.get("profile").and_then(|profile| coerce::text(profile.get("username")));
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
