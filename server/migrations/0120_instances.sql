-- One row a process, whose beat it writes again and again. Others take its work over when the beat stands still for the grace.
create table instances (
  id text primary key,
  beat bigint not null,
  host text not null,
  pid int not null,
  -- Which processes can see this one in the operating system, and when that started it: a process id is used again.
  machine text,
  pid_started text,
  schema_version int,
  started_at timestamptz not null default now()
) with (fillfactor = 50);

-- The process that holds the lease of the embedded chain. Absent: nobody, or a process of a release without leases.
alter table embedded_chain_owner add column holder text;
