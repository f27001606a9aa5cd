//! Memory and ClickHouse return the same to every query of the rollup.

use std::collections::BTreeMap;

use chrono::{DateTime, Datelike, Days, NaiveDate, Utc};
use harness::{Organization, Stack, wait_until};
use tidemark::model::account::AccountLabels;
use tidemark::model::gains::{GainMetric, Gains};
use tidemark::model::period::{Period, Window};
use tidemark::model::platform::Platform;
use tidemark::store::analytics::accounts::SubjectFilter;
use tidemark::store::analytics::rollup::{
    FollowerStep, FollowerSteps, GainsByDay, GroupGains, GroupMetric, MetricByDay, RollupQuery, SubjectGains,
    TotalsBySubject,
};
use tidemark::store::analytics::rollup_cache::RollupCache;
use tidemark::store::analytics::scope::fetch_removed_subjects;
use tidemark::store::analytics::{HistoryReader, ListedSubjects, SubjectScope};

use super::course::Course;
use super::model::{Random, chosen_seed};
use super::steps::steps_with_retention;

const METRICS: [GainMetric; 5] =
    [GainMetric::Views, GainMetric::Likes, GainMetric::Comments, GainMetric::Shares, GainMetric::Engagement];

/// Numbers by day or half, and by group or subject, with the latest observation of each.
type Answer = BTreeMap<(i64, u64), (Vec<Option<i64>>, DateTime<Utc>)>;

/// A row of an answer: its position in it, its numbers, and the latest observation.
type AnswerRow = ((i64, u64), Vec<Option<i64>>, DateTime<Utc>);

/// The history of an organization, read from memory and from ClickHouse.
struct Readers {
    organization: Organization,
    memory: HistoryReader,
    clickhouse: HistoryReader,
}

fn numbers(gains: &Gains) -> Vec<Option<i64>> {
    let Gains { views, plays, likes, comments, shares, engagement } = gains;
    [views, plays, likes, comments, shares, engagement].map(|gain| Some(*gain)).to_vec()
}

fn number(day: NaiveDate) -> i64 {
    day.num_days_from_ce().into()
}

fn step_row(row: &FollowerStep) -> AnswerRow {
    ((number(row.day), row.group_number.into()), vec![row.step], row.as_of)
}

impl Readers {
    fn new(organization: Organization) -> Self {
        let clickhouse = &organization.stack.databases.clickhouse;
        let reader = |bytes| HistoryReader::new(clickhouse, 4, RollupCache::new(bytes));
        let (memory, clickhouse) = (reader(64 << 20), reader(0));
        Readers { organization, memory, clickhouse }
    }

    async fn ask<Q: RollupQuery>(
        &self,
        reader: &HistoryReader,
        since: Option<NaiveDate>,
        window: Window,
        query: impl Fn(Window) -> Q,
        row: impl Fn(&Q::Row) -> AnswerRow,
    ) -> Answer {
        let (pg, organization) = (self.organization.pg(), self.organization.id);
        let history = reader.clone().with_history_since(since).current(pg, organization).await.unwrap();
        let mut answer = Answer::new();
        for (position, added, as_of) in history.ask(window, query).await.unwrap().iter().map(row) {
            let (numbers, latest) = answer.entry(position).or_insert((vec![None; added.len()], as_of));
            for (number, added) in numbers.iter_mut().zip(added) {
                *number = number.map_or(added, |number| Some(number + added.unwrap_or(0)));
            }
            *latest = as_of.max(*latest);
        }
        answer
    }

    /// Asks both; returns the number of rows.
    async fn compare<Q: RollupQuery>(
        &self,
        since: Option<NaiveDate>,
        window: Window,
        query: impl Fn(Window) -> Q,
        row: impl Fn(&Q::Row) -> AnswerRow,
    ) -> usize {
        let answer = self.ask(&self.memory, since, window, &query, &row).await;
        let expected = self.ask(&self.clickhouse, since, window, &query, &row).await;
        assert_eq!(answer, expected, "{window:?} since {since:?}");
        answer.len()
    }

    /// Asks each query about a scope and a window; returns the number of rows.
    async fn compare_all(
        &self,
        since: Option<NaiveDate>,
        scope: &SubjectScope,
        window: Window,
        current: NaiveDate,
    ) -> usize {
        let gains = self.compare(
            since,
            window,
            |window| GainsByDay { scope, window },
            |row: &GroupGains| {
                let more = [row.followers, row.observed.cast_signed()].map(Some);
                let numbers = [numbers(&row.gains), more.to_vec()].concat();
                ((number(row.day), row.group_number.into()), numbers, row.as_of)
            },
        );
        let steps = self.compare(
            since,
            window,
            |window| FollowerSteps::from_first_day(scope, window),
            |row: &FollowerStep| step_row(row),
        );
        let steps_within = self.compare(
            since,
            window,
            |window| FollowerSteps { scope, window, first_day: window.start },
            |row: &FollowerStep| step_row(row),
        );
        let steps_before = self.compare(
            since,
            window,
            |window| {
                FollowerSteps::from_first_day(scope, Window { end: window.start - Days::new(1), ..window })
            },
            |row: &FollowerStep| step_row(row),
        );
        let totals = self.compare(
            since,
            window,
            |window| TotalsBySubject { scope, window, current },
            |row: &SubjectGains| {
                let gains = row.gains();
                let numbers = [numbers(&gains.gains), vec![Some(gains.followers)]].concat();
                ((row.is_current.into(), row.subject_id), numbers, row.as_of)
            },
        );
        let mut count = gains.await + steps.await + steps_within.await + steps_before.await + totals.await;
        if let SubjectScope::Listed(subjects) = scope {
            for metric in METRICS {
                count += self
                    .compare(
                        since,
                        window,
                        |window| MetricByDay { subjects, metric, window },
                        |row: &GroupMetric| {
                            let position = (number(row.day), u64::from(row.group_number));
                            (position, vec![Some(row.gain)], row.as_of)
                        },
                    )
                    .await;
            }
        }
        count
    }

    /// Everything that ever had a row.
    async fn subjects(&self) -> Vec<i64> {
        let sql =
            "select distinct subject_id from account_daily where org_id = {org:UUID} order by subject_id";
        let query = self.organization.stack.databases.clickhouse.query_raw(sql);
        let subjects: Vec<u64> = query.param("org", self.organization.id).fetch_all().await.unwrap();
        subjects.into_iter().map(u64::cast_signed).collect()
    }

    /// All subjects but deleted and other ones, those of a filter, or listed ones in groups: known, unknown and deleted.
    async fn random_scope(&self, random: &mut Random, course: &Course) -> SubjectScope {
        let (pg, organization) = (self.organization.pg(), self.organization.id);
        let mut subjects = self.subjects().await;
        // More than fit into a parameter.
        let unknown = if random.chance(10) { 7_000 } else { 2 };
        subjects.extend((1..=unknown).map(|number| i64::MAX - number));
        subjects.retain(|_| random.chance(60));
        let platform = [None, Some(Platform::Instagram), Some(Platform::Tiktok)][random.below(3) as usize];
        match random.below(4) {
            0 => {
                subjects.extend(fetch_removed_subjects(pg, organization).await.unwrap());
                SubjectScope::without(platform, subjects)
            }
            1 => {
                let creator = course.ids.creators.get(random.below(3) as usize).copied();
                let category = random.chance(20).then(|| "music".to_owned());
                let labels = AccountLabels { category, ..AccountLabels::default() };
                let filter = SubjectFilter { creator, labels, platform, account: None };
                SubjectScope::find(organization, &filter).fetch(pg).await.unwrap()
            }
            2 => SubjectScope::from_subjects(subjects),
            _ => {
                let size = 1 + random.below(4) as usize;
                SubjectScope::Listed(ListedSubjects::from_groups(subjects.chunks(size)))
            }
        }
    }

    /// Asks each query about random subjects and days; returns the number of rows.
    async fn compare_random(&self, random: &mut Random, course: &Course, today: NaiveDate) -> usize {
        let scope = self.random_scope(random, course).await;
        let start = if random.chance(5) {
            NaiveDate::from_ymd_opt(1900, 1, 1).unwrap()
        } else {
            today - Days::new(random.below(110) as u64)
        };
        let end = start + Days::new(random.below(60) as u64);
        let current = start + Days::new(random.below(40) as u64);
        let since = random.chance(20).then(|| today - Days::new(random.below(60) as u64));
        self.compare_all(since, &scope, Window { period: Period::Custom, start, end }, current).await
    }
}

/// While records change (memory may be loading), and then from memory only.
#[tokio::test]
async fn memory_and_clickhouse_answer_random_queries_alike() {
    let today = Stack::shared().databases.clock.now().await.date_naive();
    for seed in chosen_seed().map_or_else(|| vec![5, fastrand::u32(..).into()], |seed| vec![seed]) {
        let mut course = Course::start(Stack::shared().unlimited_organization().await, today).await;
        let readers = Readers::new(course.organization.clone());
        let mut random = Random(seed ^ 0x5E7);
        for step in steps_with_retention(seed, today) {
            course.apply(&step).await;
            course.organization.wait_applied().await;
            if random.chance(30) {
                eprintln!("seed {seed} after {step:?}");
                readers.compare_random(&mut random, &course, today).await;
            }
        }
        let (everything, stats) =
            (SubjectScope::without(None, Vec::new()), || readers.memory.rollups().stats());
        let window = Window { period: Period::Custom, start: today - Days::new(110), end: today };
        let ask_all = || readers.compare_all(None, &everything, window, today - Days::new(30));
        let rows = wait_until("the rollup is loaded", async || {
            let before = stats().from_clickhouse;
            let rows = ask_all().await;
            (stats().from_clickhouse == before).then_some(rows)
        });
        assert_ne!(rows.await, 0);
        let before = stats();
        for number in 0..30 {
            eprintln!("seed {seed}, question {number} to memory");
            readers.compare_random(&mut random, &course, today).await;
        }
        assert_eq!(stats().from_clickhouse, before.from_clickhouse);
        assert!(stats().from_memory > before.from_memory);
    }
}
