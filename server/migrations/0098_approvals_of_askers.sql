-- Two identities may wait with the same action, each for an approval of its own.
drop index approvals_one_pending;
create unique index approvals_one_pending on approvals (tenant_id, action_hash, requested_by) where status = 'pending';
