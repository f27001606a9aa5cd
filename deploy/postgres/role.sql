-- Runs once, when the Postgres image initializes a data folder: creates the service's role, named like the database that it owns, not
-- a superuser. With pg_read_all_stats `tidemark doctor` can name blocking sessions.
\set service :DBNAME
\getenv password POSTGRES_PASSWORD
create role :"service" login password :'password' in role pg_read_all_stats;
alter database :"service" owner to :"service";

-- The role may also make the whole server read-only, for the disk guard (deploy/systemd/space). The guard uses another database, so
-- that a dump of the service's database contains no grants that only a superuser can restore.
grant alter system on parameter default_transaction_read_only to :"service";
\connect postgres
grant execute on function pg_reload_conf() to :"service";

-- The superuser is only usable inside the container: without a password it cannot log in over the network.
alter role :"USER" password null;
