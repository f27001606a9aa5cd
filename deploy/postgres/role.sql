-- Runs once, when Postgres' image makes a new folder of data: the service gets a role of its own, called as its database, which
-- owns that and is no superuser. It sees what all sessions do, for `tidemark doctor` to name those that are in the way.
\set service :DBNAME
\getenv password POSTGRES_PASSWORD
create role :"service" login password :'password' in role pg_read_all_stats;
alter database :"service" owner to :"service";

-- Besides, it may say of the whole server that nothing is to be written: the guard of the disk (deploy/systemd/space) works in
-- its name, from another database, so that a dump of the service's has no rights that only a superuser can give back.
grant alter system on parameter default_transaction_read_only to :"service";
\connect postgres
grant execute on function pg_reload_conf() to :"service";

-- The superuser is for whoever is in the container: without a password nobody comes in by the network in its name.
alter role :"USER" password null;
