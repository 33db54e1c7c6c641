-- Where the process that owns the embedded chain can be reached; one row.
create table embedded_chain_owner (
  id int primary key check (id = 1),
  url text not null
);
