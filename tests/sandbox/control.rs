//! The control API, injected faults, and the saved state.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use chrono::{TimeDelta, Utc};
use sandbox::OpenError;
use sandbox::population::Population;
use sandbox::served::{ServedContent, ServedItem};
use sandbox::server::{SandboxServer, start};
use sandbox::world::World;
use sandbox::{Counters, Fault};
use serde_json::{Value, json};
use tidemark::platforms::http_client::{HttpClient, RequestLimits};

use crate::time;

fn new_world(state: Option<PathBuf>) -> Result<World, OpenError> {
    World::open(Population::new(5, 8), state, Some(time("2026-03-10T12:00:00Z")))
}

async fn sandbox(state: Option<PathBuf>) -> SandboxServer {
    let world = Arc::new(new_world(state).expect("a new world"));
    start(([127, 0, 0, 1], 0).into(), world).await.expect("a free port")
}

fn client() -> reqwest::Client {
    let base = url::Url::parse("http://127.0.0.1/").expect("a URL");
    HttpClient::for_service("test", &base, RequestLimits::default()).expect("a client").client().clone()
}

async fn get(sandbox: &SandboxServer, path: &str) -> Value {
    let response = client().get(format!("{}{path}", sandbox.url)).send().await.expect("a response");
    assert_eq!(response.status(), 200, "{path}");
    response.json().await.expect("JSON")
}

async fn send_command(sandbox: &SandboxServer, command: Value) -> (u16, Value) {
    let response =
        client().post(format!("{}/_control", sandbox.url)).json(&command).send().await.expect("a response");
    (response.status().as_u16(), response.json().await.expect("JSON"))
}

/// Sends a command that succeeds.
async fn run_command(sandbox: &SandboxServer, command: Value) {
    let (status, response) = send_command(sandbox, command.clone()).await;
    assert_eq!((status, &response["ok"]), (200, &json!(true)), "{command}: {response}");
}

#[tokio::test]
async fn control_lists_accounts_and_the_clock_runs() {
    let sandbox = sandbox(None).await;
    let all = get(&sandbox, "/_control").await;
    let accounts = all["accounts"].as_array().expect("accounts");
    assert_eq!(accounts.len(), 8);
    for account in accounts {
        assert!(account["id"].is_string() && account["followers"].as_i64() > Some(0));
        let posts = account["posts"].as_array().expect("posts");
        assert!(posts.len() > 50);
        for post in posts {
            assert!(
                post["id"].is_string()
                    && time(post["create_time"].as_str().expect("a time")) <= sandbox.world.now()
            );
            assert!(Counters::NAMES.iter().all(|name| post.get(*name).is_some()), "{post}");
            assert_eq!(post["shortcode"].is_string(), account["platform"] == "instagram");
        }
    }
    let name = accounts[3]["username"].as_str().expect("a username");
    let one = get(&sandbox, &format!("/_control?platform=tiktok&username={name}")).await;
    assert_eq!(one["accounts"].as_array().map(Vec::len), Some(1));
    let before = sandbox.world.now();
    let clock = time(get(&sandbox, "/_clock").await["now"].as_str().expect("a time"));
    assert!((before..=sandbox.world.now()).contains(&clock));
    assert!(clock >= time("2026-03-10T12:00:00Z"), "it runs from its start");
    sandbox.stop().await;
}

#[tokio::test]
async fn commands_change_accounts() {
    let sandbox = sandbox(None).await;
    let before = get(&sandbox, "/_control?platform=instagram").await;
    let account = &before["accounts"][0];
    let (name, id, post) = (&account["username"], &account["id"], &account["posts"][4]);
    let set = |post: &str, value: Value| json!({"op": "set", "platform": "instagram", "username": name, "post": post, "counter": "like_count", "value": value});
    run_command(&sandbox, set(post["id"].as_str().expect("an id"), json!(123_456))).await;
    run_command(&sandbox, set(account["posts"][5]["shortcode"].as_str().expect("a code"), Value::Null)).await;
    run_command(
        &sandbox,
        json!({"op": "set", "platform": "instagram", "username": name, "counter": "followers", "value": 7}),
    )
    .await;
    run_command(
        &sandbox,
        json!({"op": "rename", "platform": "instagram", "username": name, "to": "Brand.New"}),
    )
    .await;
    run_command(&sandbox, json!({"op": "advance", "hours": 24.5})).await;
    let after = get(&sandbox, "/_control?username=brand.new").await;
    let renamed = &after["accounts"][0];
    assert_eq!((&renamed["id"], &renamed["followers"]), (id, &json!(7)));
    let find = |post: &Value| {
        renamed["posts"]
            .as_array()
            .and_then(|posts| posts.iter().find(|seen| seen["id"] == post["id"]))
            .cloned()
    };
    assert_eq!(find(post).expect("the post")["like_count"], 123_456);
    assert_eq!(find(&account["posts"][5]).expect("the post")["like_count"], Value::Null);
    assert!(
        find(&account["posts"][0]).expect("the post")["comment_count"].as_i64()
            >= account["posts"][0]["comment_count"].as_i64()
    );
    let passed = time(after["now"].as_str().expect("a time")) - time(before["now"].as_str().expect("a time"));
    assert!((TimeDelta::hours(24)..TimeDelta::hours(25)).contains(&passed), "{passed}");

    run_command(&sandbox, json!({"op": "lose", "platform": "instagram", "username": "brand.new"})).await;
    assert_eq!(get(&sandbox, "/_control?username=brand.new").await["accounts"], json!([]));
    run_command(&sandbox, json!({"op": "restore", "platform": "instagram", "username": "brand.new"})).await;
    assert_eq!(get(&sandbox, "/_control?username=brand.new").await["accounts"][0]["id"], *id);
    sandbox.stop().await;
}

#[tokio::test]
async fn invalid_command_is_rejected_without_effect() {
    let sandbox = sandbox(None).await;
    let all = get(&sandbox, "/_control?platform=instagram").await;
    let (name, other) = (&all["accounts"][0]["username"], &all["accounts"][1]["username"]);
    for (command, expected) in [
        (json!({"op": "dance"}), 400),
        (json!({"op": "rename", "platform": "myspace", "username": name, "to": "x"}), 400),
        (json!({"op": "rename", "platform": "instagram", "username": "unknown_account", "to": "x"}), 404),
        (json!({"op": "rename", "platform": "instagram", "username": name, "to": other}), 409),
        (json!({"op": "rename", "platform": "instagram", "username": name, "to": "a b"}), 400),
        (
            json!({"op": "set", "platform": "instagram", "username": name, "post": "1", "counter": "like_count", "value": 1}),
            404,
        ),
        (
            json!({"op": "set", "platform": "instagram", "username": name, "post": "1", "counter": "loves", "value": 1}),
            400,
        ),
        (
            json!({"op": "set", "platform": "instagram", "username": name, "counter": "like_count", "value": 1}),
            400,
        ),
        (json!({"op": "fail", "platform": "instagram", "kind": "explode", "count": 1}), 400),
        (json!({"op": "fail", "platform": "instagram", "kind": "html", "count": -1}), 400),
        (json!({"op": "advance", "hours": -1}), 400),
        (json!({"op": "advance", "hours": 1e12}), 400),
    ] {
        let (status, response) = send_command(&sandbox, command.clone()).await;
        assert_eq!(status, expected, "{command}: {response}");
        assert!(response["error"].as_str().is_some_and(|error| !error.is_empty()), "{response}");
    }
    let after = get(&sandbox, "/_control?platform=instagram").await;
    assert_eq!(after["accounts"][0]["username"], *name);
    sandbox.stop().await;
}

#[tokio::test]
async fn injected_faults_affect_the_given_number_of_requests() {
    let sandbox = sandbox(None).await;
    let name = sandbox.world.population().accounts()[1].username.clone();
    let url = format!("{}/http/v1/tiktok/accounts/{name}", sandbox.url);
    let status = async || client().get(&url).send().await.expect("a response").status().as_u16();
    run_command(&sandbox, json!({"op": "fail", "platform": "tiktok", "kind": "error", "count": 2})).await;
    run_command(&sandbox, json!({"op": "fail", "platform": "tiktok", "kind": "unauthorized", "count": 1}))
        .await;
    assert_eq!([status().await, status().await, status().await, status().await], [503, 503, 401, 200]);
    run_command(&sandbox, json!({"op": "fail", "platform": "tiktok", "kind": "error", "count": 9})).await;
    run_command(&sandbox, json!({"op": "fail", "platform": "tiktok", "kind": "error", "count": 0})).await;
    assert_eq!(status().await, 200, "a count of 0 cancels the fault");
    sandbox.stop().await;
}

#[tokio::test]
async fn requests_for_a_broken_account_fail_until_it_is_mended() {
    let sandbox = sandbox(None).await;
    let [first, second] = [1, 3].map(|index| sandbox.world.population().accounts()[index].username.clone());
    let status = async |name: &str| {
        let url = format!("{}/http/v1/tiktok/accounts/{name}", sandbox.url);
        client().get(url).send().await.expect("a response").status().as_u16()
    };
    let set = |kind: Value| json!({"op": "break", "platform": "tiktok", "username": first, "kind": kind});
    run_command(&sandbox, set(json!("error"))).await;
    assert_eq!([status(&first).await, status(&first).await, status(&second).await], [503, 503, 200]);
    let all = get(&sandbox, &format!("/_control?platform=tiktok&username={first}")).await;
    assert_eq!(all["accounts"].as_array().map(Vec::len), Some(1), "it still exists");
    assert_eq!(research_videos(&sandbox, &first).await["error"]["code"], "internal_error");
    run_command(&sandbox, set(Value::Null)).await;
    assert_eq!(status(&first).await, 200);
    sandbox.stop().await;
}

#[tokio::test]
async fn pictures_are_bad_or_replaced_by_commands() {
    let sandbox = sandbox(None).await;
    let name = sandbox.world.population().accounts()[1].username.clone();
    let page = async || get(&sandbox, &format!("/http/v1/tiktok/accounts/{name}")).await;
    let post = page().await["posts"][0]["id"].clone();
    for (post, pointer) in [(Value::Null, "/profile/profile_pic_url"), (post, "/posts/0/cover_image_url")] {
        let url = async || page().await.pointer(pointer).unwrap().as_str().unwrap().to_owned();
        let fetch = async |url: String| client().get(url).send().await.unwrap();
        let command = |op: &str, kind: Value| {
            let picture = json!({"platform": "tiktok", "username": name, "post": post});
            let mut command = json!({"op": op});
            command.as_object_mut().unwrap().extend(picture.as_object().unwrap().clone());
            if !kind.is_null() {
                command["kind"] = kind;
            }
            command
        };
        let first = url().await;
        let drawn = fetch(first.clone()).await.bytes().await.unwrap();
        run_command(&sandbox, command("picture", json!("missing"))).await;
        assert_eq!(fetch(first.clone()).await.status(), 404);
        run_command(&sandbox, command("picture", Value::Null)).await;
        assert_eq!(fetch(first.clone()).await.bytes().await.unwrap(), drawn);
        run_command(&sandbox, command("repaint", Value::Null)).await;
        let second = url().await;
        assert_ne!(second, first);
        assert_ne!(fetch(second).await.bytes().await.unwrap(), drawn);
    }
    let requests = get(&sandbox, "/_control/pictures").await;
    assert_eq!(requests["requests"].as_object().unwrap().values().collect::<Vec<_>>(), [4, 4]);
    sandbox.stop().await;
}

#[tokio::test]
async fn stopped_clock_moves_only_by_commands() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = Some(folder.path().join("state.json"));
    let sandbox = sandbox(state.clone()).await;
    run_command(&sandbox, json!({"op": "stop"})).await;
    let stopped = sandbox.world.now();
    run_command(&sandbox, json!({"op": "advance", "hours": 1.5})).await;
    let expected = stopped + TimeDelta::minutes(90);
    assert_eq!(time(get(&sandbox, "/_clock").await["now"].as_str().expect("a time")), expected);
    sandbox.stop().await;
    assert_eq!(new_world(state).expect("a restarted world").now(), expected);
}

/// Sends the query for an account's videos of a month.
async fn research_videos(sandbox: &SandboxServer, username: &str) -> Value {
    let credentials = [
        ("grant_type", "client_credentials"),
        ("client_key", "sandbox-client-key"),
        ("client_secret", "sandbox-client-secret"),
    ];
    let token = client().post(format!("{}/tiktok/v2/oauth/token", sandbox.url)).form(&credentials);
    let token: Value = token.send().await.expect("a response").json().await.expect("JSON");
    let condition = json!({"operation": "EQ", "field_name": "username", "field_values": [username]});
    let query = json!({"query": {"and": [condition]}, "start_date": "20260210", "end_date": "20260310"});
    let request = client()
        .post(format!("{}/tiktok/v2/research/video/query?fields=id,view_count,share_count", sandbox.url))
        .bearer_auth(token["access_token"].as_str().expect("a token"))
        .json(&query);
    request.send().await.expect("a response").json().await.expect("JSON")
}

/// Id and views of the posts in the record, with the number of profiles.
async fn fetch_record(sandbox: &SandboxServer) -> (usize, Vec<(String, Option<i64>)>) {
    let record = get(sandbox, "/_control/served").await;
    let items: Vec<ServedItem> = serde_json::from_value(record["served"].clone()).expect("items");
    let mut posts = Vec::new();
    for item in &items {
        assert_eq!(item.at, sandbox.world.now());
        if let ServedContent::Post { id, counters, .. } = &item.content {
            posts.push((id.clone(), counters.view_count));
        }
    }
    (items.len() - posts.len(), posts)
}

#[tokio::test]
async fn record_has_what_each_platform_served() {
    let sandbox = sandbox(None).await;
    let unrecorded = client().get(format!("{}/_control/served", sandbox.url)).send().await;
    assert_eq!(unrecorded.expect("a response").status(), 409);
    run_command(&sandbox, json!({"op": "stop"})).await;
    let accounts = sandbox.world.population().accounts();
    let (instagram, tiktok) = (&accounts[0].username, &accounts[1].username);
    let post = |row: &Value, id: &str| {
        let id = row[id].as_str().map_or_else(|| row[id].to_string(), str::to_owned);
        (id, row["view_count"].as_i64())
    };
    let posts = |rows: &Value| rows.as_array().expect("posts").iter().map(|row| post(row, "id")).collect();
    let start = async || run_command(&sandbox, json!({"op": "record"})).await;

    start().await;
    let served = get(&sandbox, &format!("/http/v1/instagram/accounts/{instagram}?max_posts=7")).await;
    let expected: Vec<_> = posts(&served["posts"]);
    assert_eq!((expected.len(), fetch_record(&sandbox).await), (7, (1, expected)));

    start().await;
    let fields =
        format!("business_discovery.username({instagram}){{followers_count,media.limit(5){{view_count}}}}");
    let token = "sandbox-graph-token";
    let served =
        get(&sandbox, &format!("/graph/v25.0/17841400000000001?access_token={token}&fields={fields}")).await;
    let expected: Vec<_> = posts(&served["business_discovery"]["media"]["data"]);
    assert_eq!((expected.len(), fetch_record(&sandbox).await), (5, (1, expected)));

    start().await;
    let expected: Vec<_> = posts(&research_videos(&sandbox, tiktok).await["data"]["videos"]);
    assert!(expected.len() > 1 && expected.iter().all(|(_, views)| views.is_some()));
    assert_eq!(fetch_record(&sandbox).await, (0, expected));

    start().await;
    run_command(&sandbox, json!({"op": "fail", "platform": "tiktok", "kind": "truncate", "count": 1})).await;
    let read = async {
        client().get(format!("{}/http/v1/tiktok/accounts/{tiktok}", sandbox.url)).send().await?.text().await
    };
    assert!(read.await.is_err());
    assert_eq!(fetch_record(&sandbox).await, (0, Vec::new()));
    sandbox.stop().await;
}

#[tokio::test]
async fn unknown_path_is_404_with_an_error() {
    let sandbox = sandbox(None).await;
    for path in ["/", "/graph/v25.0", "/http/v1/myspace/posts"] {
        let response = client().get(format!("{}{path}", sandbox.url)).send().await.expect("a response");
        assert_eq!(response.status(), 404, "{path}");
        assert!(
            response.json::<Value>().await.expect("JSON")["error"].is_string() || path.contains("myspace")
        );
    }
    sandbox.stop().await;
}

/// Bounds of how far the clock of a world is ahead of the real one, in its precision.
fn clock_offset(world: &World) -> RangeInclusive<TimeDelta> {
    let earlier = Utc::now();
    let now = world.now();
    now - Utc::now()..=now - earlier + TimeDelta::microseconds(1)
}

#[test]
fn restart_restores_the_saved_state() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("deep/sandbox.json");
    let world = new_world(Some(file.clone())).expect("a new world");
    let [first, second] = [0, 1].map(|index| world.population().accounts()[index].clone());
    let post = first.posts_at(world.now()).next().expect("a post").id;
    world.advance(240.0).expect("time passes");
    world.rename(first.platform, &first.username, "renamed").expect("a rename");
    world.set_deleted(second.platform, &second.username, None, true).expect("a deleted account");
    world.set_counter(first.platform, "renamed", Some(&post), "view_count", Some(5)).expect("a counter");
    world.set_broken(first.platform, "renamed", Some(Fault::Html)).expect("a broken account");
    world.set_counter(first.platform, "renamed", None, "followers", Some(9)).expect("followers");
    let before = clock_offset(&world);
    drop(world);

    // A kill during a change leaves a temporary file, which is ignored.
    std::fs::write(directory.path().join("deep/sandbox.json.new"), b"{\"seed\":").expect("a file");
    let restored = new_world(Some(file.clone())).expect("the same world");
    let after = clock_offset(&restored);
    assert!(before.start() <= after.end() && after.start() <= before.end(), "{before:?} {after:?}");
    let seen = restored.find_by_username(first.platform, "renamed").expect("the renamed account");
    assert_eq!((seen.account.id.as_str(), seen.profile.follower_count), (first.id.as_str(), 9));
    assert_eq!(seen.fault, Some(Fault::Html));
    let counters = seen.posts().find(|(found, _)| found.id == post).expect("the post").1;
    assert_eq!(counters.view_count, Some(5));
    assert!(restored.find_by_username(first.platform, &first.username).is_none());
    assert!(restored.find_by_username(second.platform, &second.username).is_none());

    let other =
        World::open(Population::new(6, 8), Some(file.clone()), None).err().expect("another population");
    assert!(other.to_string().contains("--seed 5"), "{other}");
    std::fs::write(&file, b"nonsense").expect("a file");
    let broken = new_world(Some(file.clone())).err().expect("an unreadable state");
    assert!(broken.to_string().contains("sandbox.json cannot be read"), "{broken}");
}
