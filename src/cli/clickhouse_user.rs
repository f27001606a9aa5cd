//! `tidemark clickhouse-user`: ClickHouse users that read one organization's data.

use clap::Subcommand;
use serde_json::json;
use uuid::Uuid;

use super::error::CommandError;
use super::output::{self, OutputArgs};
use crate::config::{ClickhouseArgs, PostgresArgs};
use crate::store::Error;
use crate::store::clickhouse::users::{self, ClickhouseUser, NewUser};
use crate::store::clickhouse::{client, logins};
use crate::store::postgres::pool;
use crate::store::records::organizations;

#[derive(Debug, Subcommand)]
pub(super) enum ClickhouseUserCommand {
    /// Create a user; its password is printed once
    ///
    /// For an existing user, sets a new password and the rights and limits of this version.
    Create {
        #[command(flatten)]
        user: UserArgs,
        #[command(flatten)]
        output: OutputArgs,
        #[command(flatten)]
        postgres: PostgresArgs,
        #[command(flatten)]
        clickhouse: ClickhouseArgs,
    },
    /// List an organization's users by name
    List {
        /// Organization
        #[arg(long, value_name = "ID")]
        org: Uuid,
        #[command(flatten)]
        output: OutputArgs,
        #[command(flatten)]
        clickhouse: ClickhouseArgs,
    },
    /// Drop a user
    Drop {
        #[command(flatten)]
        user: UserArgs,
        #[command(flatten)]
        output: OutputArgs,
        #[command(flatten)]
        clickhouse: ClickhouseArgs,
    },
}

#[derive(Debug, clap::Args)]
pub(super) struct UserArgs {
    /// Organization whose data the user reads
    #[arg(long, value_name = "ID")]
    org: Uuid,
    /// Name, as in "reports"; the user name is NAME and the organization's id
    #[arg(long, value_name = "NAME", value_parser = parse_user_name)]
    name: String,
    /// Print the statements instead of running them
    #[arg(long)]
    sql: bool,
}

pub(super) async fn run(command: ClickhouseUserCommand) -> Result<(), CommandError> {
    match command {
        ClickhouseUserCommand::Create { user, output, postgres, clickhouse } => {
            organizations::require(&pool::connect(&postgres)?, user.org).await?;
            let (database, public) = (&clickhouse.clickhouse_database, clickhouse.public_database());
            let mut new = NewUser::generate(database, &public, user.org, &user.name)?;
            if !user.sql {
                let client = client(&clickhouse);
                if logins::are_supported(&client, database).await? {
                    logins::create(&client, database, &new).await?;
                    new.database = logins::views_database(database);
                    return print_created(&new, false, output);
                }
                users::execute_all(&client, database, &new.statements).await?;
                if let Some(warning) = users::security_warning(&client).await? {
                    eprintln!("warning: {warning}");
                }
            }
            print_created(&new, user.sql, output)
        }
        ClickhouseUserCommand::List { org, output, clickhouse } => {
            let client = client(&clickhouse);
            let found = if logins::are_supported(&client, &clickhouse.clickhouse_database).await? {
                logins::list(&client, org).await?
            } else {
                users::list(&client, org).await?
            };
            output.print_list(&found, &["user", "name"])
        }
        ClickhouseUserCommand::Drop { user: args, output, clickhouse } => {
            let user = ClickhouseUser::new(args.org, &args.name);
            let database = &clickhouse.clickhouse_database;
            let statements = users::drop_statements(database, &user);
            if args.sql {
                return print_statements(&statements);
            }
            let client = client(&clickhouse);
            let existed = if logins::are_supported(&client, database).await? {
                logins::drop(&client, &user).await?
            } else {
                let existed = users::exists(&client, &user).await?;
                users::execute_all(&client, database, &statements).await?;
                existed
            };
            if !existed {
                return Err(Error::NotFound("user").into());
            }
            output.print(&user, &["user", "name"])
        }
    }
}

/// A client that works without the service's database.
fn client(args: &ClickhouseArgs) -> clickhouse::Client {
    client::connect(args).with_database("default")
}

fn print_created(new: &NewUser, sql: bool, output: OutputArgs) -> Result<(), CommandError> {
    let password = new.password.reveal();
    let mut record = serde_json::to_value(&new.user)?;
    record["password"] = json!(password);
    record["database"] = json!(new.database);
    if output.json {
        if sql {
            record["statements"] = json!(new.statements);
        }
    } else {
        eprintln!("save this password: it is shown once");
        if sql {
            eprintln!("{} {password}", new.user.user);
            return print_statements(&new.statements);
        }
    }
    output.print(&record, &["user", "password", "database"])
}

fn print_statements(statements: &[String]) -> Result<(), CommandError> {
    output::print_lines(statements.iter().map(|statement| format!("{statement};")))
}

/// Parses a name that no client's configuration has to quote.
fn parse_user_name(text: &str) -> Result<String, String> {
    let starts = text.starts_with(|first: char| first.is_ascii_alphabetic());
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if starts && plain && text.len() <= 32 {
        Ok(text.to_owned())
    } else {
        Err("a name has 1 to 32 letters, digits, hyphens and underscores, and begins with a letter"
            .to_owned())
    }
}
