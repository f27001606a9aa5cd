//! Generates statements that try to see rows of another tenant.

use crate::logins::OTHER;

const SETTINGS: [(&str, &str); 25] = [
    ("promql_table", OTHER),
    ("additional_result_filter", "1"),
    ("database", "history"),
    ("database", "team"),
    ("use_query_cache", "1"),
    ("readonly", "0"),
    ("readonly", "2"),
    ("final", "1"),
    ("join_use_nulls", "1"),
    ("join_algorithm", "grace_hash"),
    ("extremes", "1"),
    ("max_threads", "2"),
    ("max_block_size", "1"),
    ("max_rows_to_read", "60"),
    ("role", "service"),
    ("session_id", "a"),
    ("session_timezone", "Asia/Tokyo"),
    ("enable_analyzer", "0"),
    ("apply_row_policy_after_final", "1"),
    ("optimize_move_to_prewhere_if_final", "1"),
    ("prefer_column_name_to_alias", "1"),
    ("aggregate_functions_null_for_empty", "1"),
    ("dialect", "prql"),
    ("output_format_json_named_tuples_as_objects", "1"),
    ("union_default_mode", "DISTINCT"),
];

const FILTERS: &[&str] = &[
    "{'posts': 'views < 10'}",
    "{'team.posts': 'views < 0'}",
    "{'posts': 'toUInt64(name) >= 0'}",
    "{'joined': 'throwIf(views < 0) = 0'}",
    "{'totals': 'intDiv(1, if(views < 0, 0, 1)) = 1', 'running': 'throwIf(views < 0) = 0'}",
    "{'team.accounts': 'NOT ignore(throwIf(startsWith(name, \\'q\\')))'}",
    "{'accounts': 'toUInt64(name) = id', 'posts': 'CAST(name AS UInt64) > 2'}",
    "{'posts': 'org_id != toUUID(\\'11111111-1111-4111-8111-111111111111\\')'}",
    "{'posts': 'indexHint(throwIf(views < 0))'}",
    "{'posts': 'id IN (SELECT id FROM history.posts)'}",
    "{'posts': 'id IN (SELECT toUInt64(name) FROM accounts)'}",
    "{'posts': 'name IN history.posts'}",
    "{'posts': 'dictGet(\\'history.names\\', \\'name\\', id) != \\'\\''}",
    "{'history.posts': 'toUInt64(name) >= 0'}",
    "{'public.posts': 'toUInt64(name) >= 0'}",
    "{'p': 'throwIf(p.views < 0) = 0'}",
    "{'a': 'toUInt64(name) >= 0'}",
    "{'hidden.notes': 'toUInt64(name) = 0'}",
    "{'posts': '1 SETTINGS promql_table = \\'\\''}",
    "{'posts': '1) OR (1'}",
    "{'posts': 'getSetting(\\'promql_table\\') != \\'\\''}",
];

const OTHER_STATEMENTS: &[&str] = &[
    "SHOW TABLES",
    "SHOW TABLES FROM history",
    "SHOW TABLES FROM system",
    "SHOW DATABASES",
    "SHOW PROCESSLIST",
    "SHOW CREATE posts",
    "SHOW CREATE TABLE history.posts",
    "SHOW GRANTS",
    "SHOW ACCESS",
    "SHOW DICTIONARIES FROM history",
    "EXISTS history.posts",
    "CHECK TABLE history.posts",
    "SET ROLE ALL",
    "SET promql_table = ''",
    "EXECUTE AS login_views SELECT * FROM history.posts",
    "CREATE VIEW team.x AS SELECT * FROM history.posts",
    "CREATE TEMPORARY TABLE x AS SELECT * FROM posts",
    "SYSTEM RELOAD DICTIONARY history.names",
    "BACKUP TABLE history.posts TO File('posts')",
    "GRANT service TO default",
    "ALTER TABLE history.posts DELETE WHERE 1",
    "DESCRIBE history.posts",
    "DESCRIBE TABLE team.posts",
    "SHOW FULL COLUMNS FROM posts FROM history",
    "SHOW INDEX FROM posts FROM history",
    "SHOW CREATE DATABASE history",
    "EXISTS DATABASE history",
    "EXISTS DICTIONARY history.names",
    "EXPLAIN TABLE OVERRIDE mysql('a') PARTITION BY 1",
    "EXPLAIN CURRENT TRANSACTION",
    "WATCH posts",
    "CREATE TEMPORARY VIEW x AS SELECT * FROM history.posts",
    "INSERT INTO FUNCTION file('x', 'TSV') SELECT * FROM posts",
    "KILL QUERY WHERE 1",
    "ATTACH TABLE history.posts",
    "RENAME TABLE history.posts TO team.x",
    "EXCHANGE TABLES history.posts AND history.accounts",
    "REVOKE ALL ON *.* FROM default",
];

const EXPRESSIONS: &[&str] = &[
    "*",
    "org_id",
    "name",
    "count()",
    "sum(views)",
    "min(name)",
    "groupArray(name)",
    "any(views)",
    "uniqExact(org_id)",
    "toString(tuple(*))",
    "name, views",
    "max(toString(org_id))",
    "* APPLY(max)",
    "COLUMNS('name|views')",
    "dictGet('history.names', 'name', toUInt64(1))",
    "dictGetOrDefault('history.names', 'name', id, '')",
    "joinGet('history.posts', 'name', toUInt64(1))",
    "(SELECT min(name) FROM posts)",
    "(SELECT min(name) FROM history.posts)",
    "getSetting('promql_table')",
    "currentUser(), currentRoles(), currentDatabase()",
    "row_number() OVER (ORDER BY name), name",
    "arrayJoin((SELECT groupArray(name) FROM accounts))",
    "_part, _partition_id",
    "name IN (SELECT name FROM accounts)",
    "EXISTS (SELECT 1 FROM posts AS e WHERE e.views < 0)",
    "(SELECT count() FROM posts AS e WHERE e.views < 0)",
    "sum(views) OVER (PARTITION BY org_id ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    "lagInFrame(name) OVER (ORDER BY org_id, id)",
    "finalizeAggregation(groupArrayState(name))",
    "sumIf(views, throwIf(views < 0) = 0)",
    "quantiles(0, 1)(views), topK(3)(name)",
    "argMin(name, views), argMax(org_id, views)",
    "_table, _database",
    "_part_offset, _sample_factor",
    "untuple(tuple(*))",
    "EXPLAIN",
    "* EXCEPT(id), * REPLACE(throwIf(views < 0) AS views)",
    "hasColumnInTable('history', 'posts', 'name')",
    "joinGetOrNull('history.posts', 'name', id)",
    "dictHas('history.names', toUInt64(1)), dictGetChildren('history.names', toUInt64(1))",
    "catboostEvaluate('/x', 1)",
    "dictionary('history.names')",
    "version(), hostName(), uptime(), serverUUID(), initialQueryID()",
    "filesystemAvailable(), tcpPort(), getServerSetting('mark_cache_size')",
    "blockNumber(), rowNumberInAllBlocks(), runningAccumulate(sumState(views))",
    "formatRow('CSV', *)",
    "getSettingOrDefault('promql_table', '')",
    "countDistinct(org_id), any(toString(org_id))",
];

const CONDITIONS: &[&str] = &[
    "1",
    "views < 0",
    "name LIKE 'qfx%'",
    "throwIf(views < 0, name)",
    "throwIf(views < 0) = 0",
    "NOT ignore(throwIf(startsWith(name, 'q'), 'x'))",
    "intDiv(1, if(views < 0, 0, 1)) = 1",
    "intDiv(id, views + 1) >= 0",
    "toUInt8(name) >= 0",
    "toUInt64(name) = id OR views = 9",
    "CAST(name AS UInt64) > 2 AND views > 1",
    "org_id != toUUID('11111111-1111-4111-8111-111111111111')",
    "org_id = toUUID('22222222-2222-4222-8222-222222222222')",
    "org_id > toUUID('11111111-1111-4111-8111-111111111111')",
    "indexHint(views < 0)",
    "id IN (SELECT id FROM history.posts)",
    "name IN (SELECT name FROM posts WHERE views < 0)",
    "(org_id, id) IN (SELECT org_id, id FROM accounts)",
    "if(views < 0, throwIf(views < 0), 0) = 0",
    "arrayExists(x -> throwIf(x < 0) = 0, [views])",
    "id IN posts",
    "id IN history.posts",
    "EXISTS (SELECT 1 FROM history.posts AS h WHERE h.id = id)",
    "EXISTS (SELECT 1 FROM accounts AS e WHERE e.views < 0 AND throwIf(e.views < 0) = 0)",
    "sleepEachRow(if(views < 0, 3, 0)) = 0",
    "NOT ignore(parseDateTime(name, '%Y'))",
    "sipHash64(throwIf(views < 0)) != 0",
    "toUUID(name) = org_id",
    "views = (SELECT min(views) FROM joined)",
    "like(name, concat('q', 'fx%'))",
    "match(name, '^q.xh')",
    "materialize(views) < 0",
    "accurateCast(views, 'UInt8') >= 0",
    "name > (SELECT max(name) FROM accounts)",
];

const FORBIDDEN_SOURCES: &[&str] = &[
    "history.posts",
    "history.posts FINAL",
    "public.posts",
    "public.joined",
    "hidden.notes",
    "logins.logins",
    "history.names",
    "system.processes",
    "system.parts",
    "system.parts_columns",
    "system.errors",
    "system.tables",
    "system.columns",
    "system.dictionaries",
    "system.row_policies",
    "system.users",
    "system.settings",
    "system.query_cache",
    "information_schema.tables",
    "information_schema.columns",
    "merge('history', '.*')",
    "merge(REGEXP('.*'), 'posts')",
    "merge('team', '.*')",
    "mergeTreeIndex('history', 'posts')",
    "mergeTreeAnalyzeIndexes('history', 'posts', views < 0)",
    "mergeTreeProjection('history', 'posts', 'x')",
    "loop('history', 'posts')",
    "loop('team', 'posts')",
    "remote('127.0.0.1', 'history', 'posts')",
    "cluster('default', 'history', 'posts')",
    "dictionary('history.names')",
    "viewIfPermitted(SELECT * FROM history.posts ELSE null('name String'))",
    "viewExplain('EXPLAIN', '', (SELECT * FROM history.posts))",
    "eval('SELECT * FROM history.posts')",
    "file('/etc/passwd', 'LineAsString')",
    "url('http://127.0.0.1:1', 'LineAsString')",
    "executable('x', 'TSV', 'name String')",
    "generateRandom('name UInt8', 1, 1)",
    "numbers(5)",
    "values('name UInt8, id UInt64', (1, 2))",
    "{table:Identifier}",
    "public.running",
    "system.query_log",
    "system.text_log",
    "system.part_log",
    "system.grants",
    "system.roles",
    "system.replicas",
    "system.mutations",
    "system.merges",
    "system.asynchronous_metrics",
    "system.server_settings",
    "system.settings_profile_elements",
    "system.data_skipping_indices",
    "system.projections",
    "system.databases",
    "system.view_refreshes",
    "system.filesystem_cache",
    "information_schema.views",
    "INFORMATION_SCHEMA.TABLES",
    "mergeTreeTextIndex('history', 'posts', 'x')",
    "clusterAllReplicas('default', 'history', 'posts')",
    "remoteSecure('127.0.0.1', 'history', 'posts')",
    "primes(3)",
    "generate_series(1, 3)",
    "zeros(3)",
    "null('name String')",
    "format(TSV, 'name String', 'x')",
    "input('name String')",
    "sqlite('/x', 'posts')",
    "s3('http://127.0.0.1:1/x')",
    "postgresql('127.0.0.1:1', 'a', 'b', 'c', 'd')",
    "fuzzJSON(x)",
    "timeSeriesData('history', 'posts')",
    "prometheusQuery('history', 'posts', 'up', now())",
    "view(SELECT * FROM public.posts)",
    "team.`.inner.posts`",
    "`history.posts`",
    "default.posts",
    "(SELECT * FROM history.posts UNION ALL SELECT * FROM posts)",
];

pub struct Generator {
    pub state: u64,
    /// The last statement shows a plan.
    pub explains: bool,
}

impl Generator {
    /// SplitMix64.
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.state;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    fn chance(&mut self, of: u64) -> bool {
        self.random().is_multiple_of(of)
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        let index = self.random() % choices.len() as u64;
        choices[usize::try_from(index).unwrap()]
    }

    /// Settings of the request.
    pub fn settings(&mut self) -> Vec<(&'static str, &'static str)> {
        if !self.chance(4) {
            return Vec::new();
        }
        vec![self.setting()]
    }

    fn setting(&mut self) -> (&'static str, &'static str) {
        if self.chance(2) {
            return ("additional_table_filters", self.filter());
        }
        let index = self.random() % SETTINGS.len() as u64;
        SETTINGS[usize::try_from(index).unwrap()]
    }

    /// Filters of tables, as Grafana sends them.
    fn filter(&mut self) -> &'static str {
        self.pick(FILTERS)
    }

    pub fn statement(&mut self) -> String {
        let select = match self.random() % 12 {
            0 | 1 => {
                let combine = self.pick(&["UNION ALL", "UNION DISTINCT", "INTERSECT", "EXCEPT"]);
                format!("{} {combine} {}", self.select(2), self.select(2))
            }
            2 => {
                let (first, second) = (self.select(1), self.select(1));
                format!("WITH x AS ({first}), posts AS ({second}) SELECT * FROM x, posts LIMIT 9")
            }
            3 => {
                let source = self.source(1);
                format!(
                    "WITH RECURSIVE x AS (SELECT id, name, views FROM {source} UNION ALL
                     SELECT id + 1, name, views FROM x WHERE id < 3) SELECT * FROM x"
                )
            }
            _ => self.select(2),
        };
        let explain = self.pick(&[
            "EXPLAIN ",
            "EXPLAIN actions = 1, indexes = 1 ",
            "EXPLAIN PIPELINE ",
            "EXPLAIN QUERY TREE ",
            "EXPLAIN SYNTAX ",
            "EXPLAIN ESTIMATE ",
            "EXPLAIN AST ",
            "DESCRIBE ",
        ]);
        self.explains = self.chance(6);
        let statement = match (self.explains, explain) {
            (true, "DESCRIBE ") => format!("DESCRIBE ({select})"),
            (true, explain) => format!("{explain}{select}"),
            (false, _) => select,
        };
        match self.random() % 12 {
            0 => {
                statement
                    + self.pick(&[
                        " FORMAT JSON",
                        " FORMAT CSVWithNames",
                        " FORMAT Vertical",
                        " FORMAT JSONEachRow",
                    ])
            }
            1 => {
                statement
                    + self.pick(&[
                        " SETTINGS promql_table = ''",
                        " SETTINGS max_threads = 1",
                        " SETTINGS readonly = 0, max_rows_to_read = 0",
                        "; SET ROLE ALL",
                    ])
            }
            3 => {
                // Grafana's, and any other setting, at the end.
                let (name, value) = self.setting();
                let value = if value.starts_with('{') { value.to_owned() } else { format!("'{value}'") };
                format!("{statement} settings {name}={value}")
            }
            2 => self.other(),
            _ => statement,
        }
    }

    /// Statements that are no SELECT.
    fn other(&mut self) -> String {
        self.pick(OTHER_STATEMENTS).to_owned()
    }

    fn select(&mut self, depth: u8) -> String {
        let expression = self.pick(EXPRESSIONS);
        let from = self.source(depth);
        let join = if self.chance(4) {
            let kind = self.pick(&[
                "INNER",
                "LEFT",
                "RIGHT",
                "FULL",
                "ANY LEFT",
                "LEFT SEMI",
                "LEFT ANTI",
                "GLOBAL INNER",
            ]);
            let other = self.source(depth);
            format!(" AS a {kind} JOIN {other} AS b USING (id)")
        } else {
            String::new()
        };
        let array = if self.chance(12) { " ARRAY JOIN [name, toString(views)] AS part" } else { "" };
        let condition = if self.chance(2) {
            let clause = self.pick(&["WHERE", "WHERE", "PREWHERE", "QUALIFY", "HAVING"]);
            format!("{array} {clause} {}", self.condition())
        } else {
            array.to_owned()
        };
        let end = self.pick(&[
            "",
            "",
            "",
            " ORDER BY ALL",
            " LIMIT 5",
            " LIMIT 1 BY org_id",
            " GROUP BY ALL",
            " GROUP BY ALL WITH TOTALS",
            " GROUP BY GROUPING SETS ((name), (org_id))",
            " GROUP BY name WITH CUBE",
            " ORDER BY throwIf(views < 0), name LIMIT 3",
            " ORDER BY views WITH FILL LIMIT 5",
            " LIMIT 3 OFFSET 1 ROWS",
        ]);
        format!("SELECT {expression} FROM {from}{join}{condition}{end}")
    }

    fn condition(&mut self) -> String {
        let condition = self.pick(CONDITIONS);
        match self.random() % 5 {
            0 => format!("{condition} OR {}", self.condition()),
            1 => format!("{condition} AND {}", self.condition()),
            _ => condition.to_owned(),
        }
    }

    fn source(&mut self, depth: u8) -> String {
        if depth > 0 && self.chance(4) {
            let inner = self.select(depth - 1);
            return match self.random() % 4 {
                0 => format!("view({inner})"),
                1 => format!("({inner} SETTINGS promql_table = '22222222-2222-4222-8222-222222222222')"),
                _ => format!("({inner})"),
            };
        }
        if self.chance(3) {
            return self.forbidden_source().to_owned();
        }
        self.pick(&[
            "posts",
            "accounts",
            "joined",
            "team.posts",
            "`team`.`accounts`",
            "posts FINAL",
            "posts SAMPLE 1",
            "totals",
            "running",
            "joined FINAL",
            "(SELECT * FROM posts PREWHERE throwIf(views < 0) = 0)",
        ])
        .to_owned()
    }

    fn forbidden_source(&mut self) -> &'static str {
        self.pick(FORBIDDEN_SOURCES)
    }
}
