-- What the tracker scrapes; nothing is due for years, so that it does not.
insert into scrape_targets (id, organization_id, platform, kind, last_attempt_at, next_attempt_at)
select id, organization_id, platform, 'account', observed_at, now() + interval '10 years' from accounts
union all
select id, organization_id, platform, 'video', observed_at, now() + interval '10 years' from videos where is_tracked
