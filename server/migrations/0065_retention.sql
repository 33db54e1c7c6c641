-- Counters of windows that have ended are found by their period, which begins with the window and its start. The period of a
-- counter never changes, so this index does not hinder updates of the counter in place.
create index limits_by_period on limits (period collate "C");
