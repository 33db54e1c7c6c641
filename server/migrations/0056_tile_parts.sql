-- A tile is stored in parts of 32 hashes. An append changes the last part of a tile, one kilobyte at most, and so writes
-- neither the hashes that were there before nor rows of large values. Parts only grow, as tiles do.
alter table log_tiles rename to whole_tiles;
create table log_tiles (
  level int not null check (level between 0 and 63),
  index bigint not null check (index >= 0),
  part int not null check (part between 0 and 7),
  bytes bytea not null check (octet_length(bytes) between 32 and 1024 and octet_length(bytes) % 32 = 0),
  primary key (level, index, part)
-- Room for the next forms of the last part on the same page.
) with (fillfactor = 50);
insert into log_tiles (level, index, part, bytes)
select tile.level, tile.index, part, substring(tile.bytes from part * 1024 + 1 for 1024)
from whole_tiles tile cross join generate_series(0, 7) as part
where octet_length(tile.bytes) > part * 1024
order by tile.level, tile.index, part;
drop table whole_tiles;
