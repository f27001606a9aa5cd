//! Logins that read the rows of one tenant. The engine enforces it, before any condition of a query: it takes no users at run
//! time, but a `users.xml`, in which the rights of its own user are a role's. A login's requests give up the role, and keep
//! SELECT on one database of views. The views run as another user (`SQL SECURITY DEFINER`), whose row policies compare the
//! tenant of a row with a setting of the request. A request cannot forge that setting: it ends in a digest with a secret.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use uuid::Uuid;

use crate::credentials::{CredentialsError, generate_password};
use crate::exception::{Exception, Result};
use crate::ffi::Connection;

/// The user as which the views of logins run.
pub const VIEW_DEFINER: &str = "login_views";
/// The logins: `name String, tenant UUID, password_sha256 String` (hexadecimal). A login without a row does not exist.
pub const LOGIN_TABLE: &str = "logins.logins";

/// Carries the tenant: a setting of a dialect that requests cannot choose.
pub(crate) const TENANT_SETTING: &str = "promql_table";
const UUID_LENGTH: usize = 36;

/// What logins read.
#[derive(Clone, Debug)]
pub struct LoginRights {
    /// The database of the views with [`VIEW_DEFINER`], the only one that logins read.
    pub views: String,
    /// Databases and tables that the views read, each as in GRANT.
    pub sources: Vec<String>,
    /// The database and the names of the tables with rows of many tenants.
    pub database: String,
    pub tables: Vec<String>,
    /// The column of these tables with the tenant.
    pub tenant_column: String,
}

/// A user of one tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Login {
    pub name: String,
    pub tenant: Uuid,
}

/// The rights of logins on an open engine, and the secret of this start.
#[derive(Debug)]
pub(crate) struct LoginAccess {
    rights: LoginRights,
    secret: String,
}

impl LoginAccess {
    pub(crate) fn new(rights: LoginRights) -> std::result::Result<Self, CredentialsError> {
        Ok(Self { rights, secret: generate_password()? })
    }

    /// The database of the views.
    pub(crate) fn views(&self) -> &str {
        &self.rights.views
    }

    /// The engine's users: its own, with the role `service` for everything, and the definer of the views.
    pub(crate) fn users_xml(&self) -> String {
        let LoginRights { views, sources, database, tables, .. } = &self.rights;
        let grant = |grant: String| format!("<query>GRANT {}</query>", escaped(&grant));
        let grants: String = sources.iter().map(|source| grant(format!("SELECT ON {source}"))).collect();
        let filter = escaped(&self.row_filter());
        let table = |name| format!("<table name=\"{}\"><filter>{filter}</filter></table>", escaped(name));
        let policies: String = tables.iter().map(|name| table(name)).collect();
        format!(
            "<clickhouse>
    <!-- overwritten at every start -->
    <profiles><default/></profiles>
    <roles>
        <service><grants><query>GRANT ALL ON *.* WITH GRANT OPTION</query></grants></service>
    </roles>
    <users>
        <default>
            <password></password>
            <networks><ip>::/0</ip></networks>
            <profile>default</profile>
            <grants><query>GRANT service</query>{own}</grants>
            <databases>
                <database name=\"system\">{hidden}</database>
            </databases>
        </default>
        <{VIEW_DEFINER}>
            <no_password/>
            <networks><ip>::1</ip></networks>
            <profile>default</profile>
            <grants>{grants}</grants>
            <databases>
                <database name=\"{database}\">{policies}</database>
            </databases>
        </{VIEW_DEFINER}>
    </users>
</clickhouse>
",
            own = grant(format!("SELECT ON {}.*", quoted(views))),
            hidden = HIDDEN_SYSTEM_TABLES
                .map(|name| format!(
                    "<table name=\"{name}\"><filter>notEmpty(enabledRoles())</filter></table>"
                ))
                .concat(),
            database = escaped(database),
        )
    }

    /// The condition of the row policies. It is constant but for the column, so the engine uses it like a condition on the
    /// key of a table.
    fn row_filter(&self) -> String {
        let tenant = format!("substring(getSetting('{TENANT_SETTING}'), 1, {UUID_LENGTH})");
        let digest = format!("substring(getSetting('{TENANT_SETTING}'), {})", UUID_LENGTH + 1);
        format!(
            "{} = toUUIDOrZero(if(lower(hex(SHA256(concat('{}', {tenant})))) = {digest}, {tenant}, ''))",
            self.rights.tenant_column, self.secret
        )
    }

    /// The value of the setting for a tenant.
    fn tenant_token(&self, tenant: Uuid) -> String {
        format!("{tenant}{}", sha256_hex(&format!("{}{tenant}", self.secret)))
    }

    /// The database of a login's request: the views, which requests may leave out.
    pub(crate) fn database(&self, requested: Option<&str>) -> Result<&str> {
        let views = &self.rights.views;
        match requested {
            None | Some("default") => Ok(views),
            Some(name) if name == views => Ok(views),
            Some(_) => Err(Exception::readonly(format!("this user reads the database {views} only"))),
        }
    }

    /// Restricts a new connection to the views and the login's rows.
    pub(crate) fn restrict(&self, connection: &mut Connection, login: &Login) -> Result<()> {
        let token = self.tenant_token(login.tenant);
        // Caches do not know the tenant.
        connection.execute(&format!(
            "SET {TENANT_SETTING}='{token}', use_query_condition_cache=0, use_query_cache=0"
        ))?;
        connection.execute("SET ROLE NONE")
    }
}

/// System tables with texts of other users. Those about tables and columns show what a user may read; `access` permits few.
const HIDDEN_SYSTEM_TABLES: [&str; 6] =
    ["processes", "user_processes", "errors", "stack_trace", "query_cache", "query_condition_cache"];

/// Finds the login with this name and password.
pub(crate) fn authenticate(connection: &mut Connection, name: &str, password: &str) -> Result<Option<Login>> {
    let sql =
        format!("SELECT tenant, password_sha256 FROM {LOGIN_TABLE} WHERE name = {{name:String}} LIMIT 1");
    let parameters = [("name".to_owned(), name.to_owned())];
    let result = connection.query(sql.as_bytes(), "TSVRaw", &parameters);
    let output = match result {
        Ok(output) => String::from_utf8_lossy(output.as_ref()).into_owned(),
        // UNKNOWN_TABLE, UNKNOWN_DATABASE: no login was ever created.
        Err(exception) if [60, 81].contains(&exception.code) => return Ok(None),
        Err(exception) => return Err(exception),
    };
    let Some((tenant, stored)) = output.trim_end().split_once('\t') else { return Ok(None) };
    let is_correct: bool = sha256_hex(password).as_bytes().ct_eq(stored.as_bytes()).into();
    let tenant = Uuid::parse_str(tenant).ok().filter(|_| is_correct);
    Ok(tenant.map(|tenant| Login { name: name.to_owned(), tenant }))
}

fn sha256_hex(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('\\', "\\\\").replace('`', "\\`"))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> LoginAccess {
        let rights = LoginRights {
            views: "team".to_owned(),
            sources: vec!["history.posts".to_owned()],
            database: "history".to_owned(),
            tables: vec!["posts".to_owned()],
            tenant_column: "org_id".to_owned(),
        };
        LoginAccess::new(rights).unwrap()
    }

    #[test]
    fn tokens_differ_between_tenants_and_starts() {
        let (first, second) = (access(), access());
        let tenant = Uuid::from_u128(7);
        let token = first.tenant_token(tenant);
        assert_eq!((token.len(), &token[..UUID_LENGTH]), (UUID_LENGTH + 64, &*tenant.to_string()));
        assert_ne!(token, second.tenant_token(tenant));
        assert_ne!(token[UUID_LENGTH..], first.tenant_token(Uuid::from_u128(8))[UUID_LENGTH..]);
    }

    #[test]
    fn requests_choose_no_other_database() {
        let access = access();
        for requested in [None, Some("default"), Some("team")] {
            assert_eq!(access.database(requested).unwrap(), "team");
        }
        for requested in ["history", "system", "Team", "team.posts"] {
            assert_eq!(access.database(Some(requested)).unwrap_err().code, 164, "{requested}");
        }
    }

    #[test]
    fn names_are_escaped() {
        assert_eq!(escaped("a<&\""), "a&lt;&amp;&quot;");
        assert_eq!(quoted("a`b"), "`a\\`b`");
    }
}
