-- How far the log has been written. `size`, `root` and `note` are the newest checkpoint that was signed, which happens
-- only after the database has confirmed the commit of these two: a failover cannot take back what a signature stands for.
alter table log_head
  add column appended_size bigint check (appended_size >= 0),
  add column appended_root bytea check (octet_length(appended_root) = 32);
