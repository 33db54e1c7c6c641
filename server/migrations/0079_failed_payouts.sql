-- A withdrawal that the token refuses ends as failed once no authorisation that was signed for it can be used any more.
-- `refused_until`: the end of validity of the last one, in seconds since 1970; from then on nothing is signed for it.
alter table payouts add column refused_until bigint, drop constraint payouts_state_check,
  add constraint payouts_state_check check (state in ('pending', 'paid', 'cancelled', 'failed'));
