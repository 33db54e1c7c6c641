-- A constant, encrypted with the key of the first process that used this database: a start with another key is refused.
create table encryption_canary (
  id int primary key check (id = 1),
  sealed text not null
);
