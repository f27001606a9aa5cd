//! Generates statements that try to see rows of another tenant.

use crate::logins::OTHER;

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
        const SETTINGS: [(&str, &str); 14] = [
            ("promql_table", OTHER),
            ("additional_table_filters", "{'history.posts': '1'}"),
            ("additional_result_filter", "1"),
            ("database", "history"),
            ("database", "team"),
            ("use_query_cache", "1"),
            ("readonly", "0"),
            ("final", "1"),
            ("join_use_nulls", "1"),
            ("extremes", "1"),
            ("max_threads", "2"),
            ("max_block_size", "1"),
            ("role", "service"),
            ("session_id", "a"),
        ];
        if !self.chance(5) {
            return Vec::new();
        }
        let index = self.random() % SETTINGS.len() as u64;
        vec![SETTINGS[usize::try_from(index).unwrap()]]
    }

    pub fn statement(&mut self) -> String {
        let select = if self.chance(6) {
            let all = self.pick(&["ALL", "DISTINCT"]);
            format!("{} UNION {all} {}", self.select(2), self.select(2))
        } else {
            self.select(2)
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
                        "; SET ROLE ALL",
                    ])
            }
            2 => self.other(),
            _ => statement,
        }
    }

    /// Statements that are no SELECT.
    fn other(&mut self) -> String {
        self.pick(&[
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
        ])
        .to_owned()
    }

    fn select(&mut self, depth: u8) -> String {
        let expression = self.pick(&[
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
        ]);
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
        let condition = if self.chance(2) {
            format!(" {} {}", self.pick(&["WHERE", "WHERE", "PREWHERE", "QUALIFY"]), self.condition())
        } else {
            String::new()
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
        ]);
        format!("SELECT {expression} FROM {from}{join}{condition}{end}")
    }

    fn condition(&mut self) -> String {
        let condition = self.pick(&[
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
        ]);
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
        ])
        .to_owned()
    }

    fn forbidden_source(&mut self) -> &'static str {
        self.pick(&[
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
        ])
    }
}
