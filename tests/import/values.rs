//! Nothing is silently wrong: unclear values are refused or reported with their row, column and value.

use harness::{Organization, Stack};
use serde_json::{Value, json};
use tidemark::import::{FileReport, ImportOptions, RejectionFile};

use crate::setup::{InputFile, fixture, load_with};

fn options() -> ImportOptions {
    ImportOptions { report: RejectionFile::None, ..ImportOptions::default() }
}

async fn load_text(organization: &Organization, text: &str, options: &ImportOptions) -> FileReport {
    let file = InputFile::create("history.csv", text);
    load_with(organization, &file.path, options).await.files.remove(0)
}

fn reasons(report: &FileReport) -> Vec<(u64, &str)> {
    report.refusals.iter().map(|refusal| (refusal.line, refusal.reason.as_str())).collect()
}

#[tokio::test]
async fn counters_of_spreadsheets_are_read_or_refused() {
    let organization = Stack::shared().organization().await;
    let text = "platform;username;external_id;observed_at;view_count;like_count;saved_count\n\
        tiktok;ann;1;2025-01-10;1,234;1 234;25.0\n\
        tiktok;ann;2;2025-01-10;--;NAN;undefined\n\
        tiktok;ann;3;2025-01-10;12.000;1.234;7\n\
        tiktok;ann;4;2025-01-10;1.2K;48.5M;7\n\
        tiktok;ann;5;2025-01-10;3,4 Mio.;-1;7\n\
        ;;;;;;\n\
        tiktok;ann;6;2025-01-10;1\u{202f}234;-1.0;n/a\n";
    let report = load_text(&organization, text, &options()).await;
    assert_eq!((report.rows_read, report.refused), (6, 3));
    let reasons = reasons(&report);
    assert_eq!(
        reasons[0],
        (
            4,
            "view_count: `12.000` may be a thousand or a fraction: write 1234 or 1,234; \
        like_count: `1.234` may be a thousand or a fraction: write 1234 or 1,234"
        )
    );
    assert_eq!(reasons[1].0, 5);
    assert!(
        reasons[1].1.contains("`1.2K` is rounded") && reasons[1].1.contains("`48.5M` is rounded"),
        "{reasons:?}"
    );
    assert!(reasons[2].1.starts_with("view_count: `3,4 Mio.` is rounded"), "{reasons:?}");
    let videos = organization.get("/account-videos?order_by=view_count").await.ok(200);
    let counters = |video: &Value| {
        json!([video["external_id"], video["view_count"], video["like_count"], video["saved_count"]])
    };
    let stored: Vec<_> = videos.list("/data").iter().map(counters).collect();
    for expected in [json!(["1", 1234, 1234, 25]), json!(["2", 0, 0, null]), json!(["6", 1234, 0, null])] {
        assert!(stored.contains(&expected), "{stored:?}");
    }
}

#[tokio::test]
async fn all_violations_of_a_row_are_reported() {
    let organization = Stack::shared().organization().await;
    let text = "platform,username,external_id,observed_at,create_time,view_count,duration\n\
        tiktok,no such name,CfUjwr8vyv2,yesterday,12:00,-5,long\n";
    let report = load_text(&organization, text, &options()).await;
    let reasons = reasons(&report);
    for violation in [
        "username: `no such name`",
        "external_id: `CfUjwr8vyv2`",
        "observed_at: `yesterday`",
        "create_time: `12:00`",
        "view_count: `-5`",
    ] {
        assert!(reasons[0].1.contains(violation), "{violation}: {reasons:?}");
    }
    let text = "username,observed_at,follower_count,view_count,url,cover_image_url\n\
        ,yesterday,1.5,,,\n\
        ann,yesterday,,1.5K,https://www.tiktok.com/@ann/video/1,javascript:x\n";
    let report = load_text(&organization, text, &options()).await;
    let text = "platform,username,scrape_interval_hours,account_tags,is_active\n\
        tiktok,ann,5,\"[\"\"x\"\"]\",perhaps\n\
        tiktok,ann,6,\"{\"\"a\"\": \"\"b\"\"}\",no\n";
    let settings = load_text(&organization, text, &options()).await;
    let [refusal] = &settings.refusals[..] else { panic!("{settings:?}") };
    for violation in [
        "scrape_interval_hours: `5` must be from 6 to 720 hours",
        "account_tags: `[\"x\"]` must",
        "is_active: `perhaps`",
    ] {
        assert!(refusal.reason.contains(violation), "{violation}: {refusal:?}");
    }
    for (row, violations) in [
        (0, &["observed_at: `yesterday`", "platform: is required", "follower_count: `1.5`"][..]),
        (
            1,
            &["observed_at: `yesterday`", "view_count: `1.5K` is rounded", "cover_image_url: `javascript:x`"],
        ),
    ] {
        let reason = &report.refusals[row].reason;
        assert!(violations.iter().all(|violation| reason.contains(violation)), "{violations:?}: {reason}");
    }
}

#[tokio::test]
async fn rounded_counters_of_an_account_are_left_out_once() {
    let organization = Stack::shared().organization().await;
    let text = "platform,username,observed_at,follower_count,following_count\n\
        tiktok,ann,2025-01-10,1.2M,7\ntiktok,bob,2025-01-10,3.4M,8\n";
    let report = load_text(&organization, text, &options()).await;
    assert_eq!((report.refused, report.snapshots), (0, 2));
    assert_eq!(report.assumed, ["left out `follower_count` of 2 rows: `1.2M` in line 2 is rounded"]);
    let account = organization.get("/accounts/@ann").await.ok(200);
    assert_eq!(account.integer("/data/following_count"), 7);
}

#[tokio::test]
async fn counters_in_rows_of_the_other_kind_are_reported() {
    let organization = Stack::shared().organization().await;
    let text = "platform,username,external_id,observed_at,follower_count,view_count\n\
        tiktok,ann,,2025-01-10,5,99\ntiktok,ann,,2025-01-11,,98\ntiktok,,1,2025-01-11,6,97\n";
    let report = load_text(&organization, text, &options()).await;
    let reason =
        "view_count: `98` is of a post, but the row names none: add `external_id`, `shortcode` or `url`";
    assert_eq!(reasons(&report), [(3, reason)]);
    assert_eq!(
        report.assumed,
        [
            "left out `follower_count` of 1 row: `6` in line 4 is of an account, which the row does not name",
            "left out `view_count` of 1 row: `99` in line 2 is of a post, and the row is an account's",
        ]
    );
    let mappings = vec!["group=category".parse().unwrap()];
    let text = "platform,username,external_id,observed_at,view_count,group\ntiktok,ann,1,2025-01-10,5,x\n";
    let report = load_text(&organization, text, &ImportOptions { mappings, ..options() }).await;
    assert_eq!(report.assumed, ["`group` is not read: rows of posts have no `category`"]);
}

#[tokio::test]
async fn links_give_what_rows_lack_and_contradictions_are_refused() {
    let organization = Stack::shared().organization().await;
    let id = "7502731481519965543";
    let link = format!("https://www.tiktok.com/@ann.lee/video/{id}");
    let text = format!(
        "url,platform,username,external_id,shortcode,observed_at,view_count\n\
        {link},,,,,2025-10-01,1\n\
        {link},tiktok,old.name,{id},,2025-10-02,2\n\
        {link},,,7.50273E+18,,2025-10-03,3\n\
        {link},,,7502731481519966000,,2025-10-04,4\n\
        {link},,,7502731481519965544,,2025-10-05,5\n\
        {link},instagram,,,,2025-10-05,5\n\
        ,tiktok,ann.lee,7.50273E+18,,2025-10-05,5\n\
        https://www.instagram.com/reel/DGzXiVzgiIi/,,olive,,DFnrQKTgRER,2025-10-05,5\n\
        instagram.com/p/DFnrQKTgRER,,olive,3560004257035915537,,2025-10-05,5\n\
        https://vm.tiktok.com/ZMabc123/,,,,,2025-10-05,5\n\
        https://example.com/x,,,,,2025-10-05,5\n\
        https://www.tiktok.com/@ann.lee,,,,,2025-10-05,\n"
    );
    let report = load_text(&organization, &text, &options()).await;
    let refused = reasons(&report);
    let expected = [
        (6, "external_id: `7502731481519965544` names another post than the link"),
        (7, "platform: `instagram` is not the platform of the link"),
        (8, "external_id: `7.50273E+18`"),
        (9, "shortcode: `DFnrQKTgRER` names another post than the link"),
        (11, "url: `https://vm.tiktok.com/ZMabc123/` is a short link"),
        (12, "url: `https://example.com/x` is not a link"),
    ];
    assert_eq!(refused.len(), expected.len(), "{refused:?}");
    for ((line, reason), (expected_line, start)) in refused.iter().zip(expected) {
        assert_eq!(*line, expected_line, "{refused:?}");
        assert!(reason.starts_with(start), "{reason}");
    }
    let videos = organization.get("/account-videos").await.ok(200);
    assert_eq!(videos.list("/data").len(), 2, "one of each platform");
}

#[tokio::test]
async fn headers_say_what_is_missing_and_which_option_gives_it() {
    let organization = Stack::shared().organization().await;
    for (text, options, expected) in [
        ("views,likes\n1,2\n", options(), &["`views`, `likes`", "--map", "--formats"][..]),
        ("", options(), &["needs a header"]),
        ("external_id,view_count\n1,2\n", options(), &["--platform", "--observed-at"]),
        ("follower_count,observed_at,username\n1,2025-01-01,ann\n", options(), &["--platform"]),
        ("username,username\nann,bob\n", options(), &["two columns `username`"]),
    ] {
        let error = load_text(&organization, text, &options).await.error.unwrap();
        assert!(expected.iter().all(|part| error.contains(part)), "{text}: {error}");
    }
    let given = ImportOptions {
        platform: Some("tiktok".parse().unwrap()),
        username: Some("ann".to_owned()),
        observed_at: Some("2025-05-05T00:00:00Z".parse().unwrap()),
        ..options()
    };
    let report = load_text(&organization, "external_id,view_count\n1,2\n", &given).await;
    assert_eq!((report.error, report.refused, report.accounts, report.snapshots), (None, 0, 1, 1));
}

#[tokio::test]
async fn dry_run_shows_everything_and_writes_nothing() {
    let organization = Stack::shared().organization().await;
    let rows: String = (1..=7).map(|n| format!("tiktok,ann,{n},2025-01-0{n},{n},say {n}\n")).collect();
    let text = format!(
        "platform,username,external_id,observed_at,view_count,description\n{rows}tiktok,ann,CfUjwr8vyv2,2025-01-01,1,\n"
    );
    let file = InputFile::create("history.csv", text);
    let run = |arguments: &[&str]| {
        let mut command = organization.stack.connection.command();
        command.args(["import", "--org", &organization.id.to_string()]).args(arguments);
        command.arg(&file.path).output().unwrap()
    };
    let output = run(&["--dry-run", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let dry: Value = serde_json::from_slice(&output.stdout).unwrap();
    let report = &dry["files"][0];
    assert_eq!(
        (&report["rows_read"], &report["videos"], &report["refused"]),
        (&json!(8), &json!(7), &json!(1))
    );
    assert_eq!(
        (&report["first_observed_at"], &report["last_observed_at"]),
        (&json!("2025-01-01T00:00:00Z"), &json!("2025-01-07T00:00:00Z"))
    );
    assert_eq!(report["sample"].as_array().unwrap().len(), 5);
    let expected = json!({"type": "video", "platform": "tiktok", "username": "ann", "external_id": "1",
        "observed_at": "2025-01-01T00:00:00Z", "description": "say 1", "view_count": 1, "play_count": 1});
    assert_eq!(report["sample"][0], expected);
    assert_eq!(report["refusals"][0]["line"], 9);
    assert!(!file.report().exists());
    assert_eq!(organization.get("/accounts").await.ok(200).list("/data").len(), 0);
    let text = String::from_utf8(run(&["--dry-run"]).stdout).unwrap();
    assert!(
        text.contains("(tidemark): 8 rows, 1 accounts, 7 videos") && text.contains("description=say 1"),
        "{text}"
    );
}

/// Without the addresses of stores.
#[test]
fn formats_are_listed_with_their_columns() {
    let output = harness::command().args(["import", "--formats"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for line in [
        "    view_count = videoPlayCount, else videoViewCount",
        "    view_count = statsV2.playCount, else stats.playCount",
        "    share_count = repost_count",
        "    view_count = Views",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/import.md")).unwrap();
    for format in tidemark::import::formats() {
        assert!(text.contains(&format!("{}: {}", format.name, format.tool)), "{}", format.name);
        assert!(page.contains(&format!("`{}`", format.name)), "docs/import.md lacks {}", format.name);
    }
}

#[tokio::test]
async fn accounts_beyond_the_cap_are_refused_where_it_binds() {
    let organization = Stack::shared().organization().await;
    sqlx::query("update organizations set account_cap = 1 where id = $1")
        .bind(organization.id)
        .execute(organization.pg())
        .await
        .unwrap();
    let text = "platform,username,observed_at,follower_count\ntiktok,ann,2025-01-10,1\ntiktok,bob,2025-01-10,2\ntiktok,ann,2025-01-11,3\n";
    let capped = ImportOptions { enforces_account_cap: true, ..options() };
    for _ in 0..2 {
        let report = load_text(&organization, text, &capped).await;
        assert_eq!((report.accounts, report.snapshots, report.refused), (1, 2, 1));
        assert!(
            report.refusals[0].reason.contains("`bob` is beyond the organization's cap of 1"),
            "{report:?}"
        );
    }
}

#[tokio::test]
async fn last_row_of_one_post_and_time_holds() {
    let organization = Stack::shared().organization().await;
    let text = "platform,username,external_id,observed_at,view_count,like_count\n\
        tiktok,ann,1,2025-01-10,5,9\ntiktok,ann,1,2025-01-09,4,9\ntiktok,ann,1,2025-01-10,7,8\n";
    let file = InputFile::create("history.csv", text);
    let summary = load_with(&organization, &file.path, &options()).await;
    assert_eq!((summary.rows_read, summary.snapshots_written), (3, 2));
    let overview = organization.get("/overview?start_date=2025-01-10&end_date=2025-01-10").await.ok(200);
    assert_eq!(overview.integer("/data/views/current"), 3);
    let videos = organization.get("/account-videos").await.ok(200);
    assert_eq!((videos.integer("/data/0/view_count"), videos.integer("/data/0/like_count")), (7, 8));
}

#[tokio::test]
async fn numeric_cells_of_a_workbook_are_no_ids() {
    let organization = Stack::shared().organization().await;
    let report = load_with(&organization, &fixture("numeric-ids.xlsx"), &options()).await.files.remove(0);
    let refused = reasons(&report);
    assert_eq!(refused.len(), 1, "{report:?}");
    assert!(refused[0].0 == 3 && refused[0].1.contains("lost digits"), "{refused:?}");
    let videos = organization.get("/account-videos").await.ok(200);
    assert_eq!(videos.text("/data/0/external_id"), "7502731481519965543");
}

#[tokio::test]
async fn ids_that_a_spreadsheet_rounded_are_refused_or_reported() {
    let stack = Stack::shared();
    let table = |ids: &[&str]| {
        let row = |id: &&str| format!("tiktok,ann,{id},2025-01-10,5\n");
        let rows: String = ids.iter().map(row).collect();
        format!("platform,username,external_id,observed_at,view_count\n{rows}")
    };
    // Excel and JavaScript: all ids of a table.
    for ids in [
        &["7507934733892860000", "7507934733892860000", "7508934733892990000", "12"][..],
        &["7507934733892865000", "7508934733892999000"],
    ] {
        let organization = stack.organization().await;
        let report = load_text(&organization, &table(ids), &options()).await;
        let short = ids.iter().filter(|id| id.len() < 5).count() as u64;
        assert_eq!((report.refused, report.videos), (ids.len() as u64 - short, short), "{report:?}");
        let (line, reason) = reasons(&report)[0];
        assert!(
            line == 2 && reason.starts_with(&format!("external_id: `{}` is rounded", ids[0])),
            "{reason}"
        );
    }
    // A single one, and a round id beside an exact one.
    for ids in [&["7507934733892860000"][..], &["7300000000000000000", "7300000000000000001"]] {
        let organization = stack.organization().await;
        let report = load_text(&organization, &table(ids), &options()).await;
        assert_eq!((report.refused, report.videos), (0, ids.len() as u64), "{report:?}");
        let start = "`external_id` of 1 row ends as if a spreadsheet had rounded it: ";
        assert_eq!(report.assumed.len(), 1, "{report:?}");
        assert!(report.assumed[0].starts_with(&format!("{start}`{}` in line 2", ids[0])), "{report:?}");
    }
    // A link or a shortcode tells the id.
    let organization = stack.organization().await;
    let text = "url,platform,shortcode,external_id,observed_at,view_count\n\
        https://www.tiktok.com/@ann.lee/video/7507934733892865323,,,7507934733892860000,2025-01-10,5\n\
        https://www.tiktok.com/@ann.lee/video/7508934733892990000,,,7508934733892990000,2025-01-10,5\n\
        ,instagram,DFnrQKTgRER,3560004257035910000,2025-01-10,5\n";
    let report = load_text(&organization, text, &options()).await;
    assert_eq!((report.refused, report.videos, report.assumed.len()), (0, 3, 0), "{report:?}");
}

#[tokio::test]
async fn insights_of_a_period_are_no_counters() {
    let organization = Stack::shared().organization().await;
    let row = |period: &str| {
        format!(
            "{{\"id\": \"17900000500000001\", \"media_type\": \"IMAGE\", \"timestamp\": \"2025-02-03T18:00:00+0000\",
              \"insights\": {{\"data\": [{{\"name\": \"views\", \"period\": \"{period}\", \"values\": [{{\"value\": 7}}]}}]}}}}"
        )
    };
    let observed_at = Some("2025-05-05T00:00:00Z".parse().unwrap());
    for (period, refused) in [("day", 1), ("lifetime", 0)] {
        let given = ImportOptions { observed_at, ..options() };
        let report = load_text(&organization, &row(period), &given).await;
        assert_eq!((report.refused, report.snapshots), (refused, 1 - refused), "{report:?}");
        if let Some((_, reason)) = reasons(&report).first() {
            assert!(reason.starts_with("view_count: is of a period"), "{reason}");
        }
    }
}
