-- A key that was rotated knows which one took its place. What its own expiry says then is the end of the overlap, so it cannot
-- be rotated again. No foreign key: the other one may be deleted.
alter table api_keys add column replaced_by uuid;
