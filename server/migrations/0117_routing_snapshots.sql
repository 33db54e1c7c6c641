-- What the lanes were measured at, frozen once an hour: routing by 'fastest' and 'quality' reads the newest row only, and
-- routing_version names it, so that the same question has the same answer in every process.
create table routing_snapshots (
  hour timestamptz primary key,
  version text not null,
  lanes jsonb not null
);
