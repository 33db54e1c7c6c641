-- A login with the broker belongs to the browser that began it: the hash of its cookie. Rows of earlier versions have none
-- and are never accepted; they expire after ten minutes.
alter table rh_oauth_states add column browser_hash text;
