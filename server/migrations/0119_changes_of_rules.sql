-- What a tenant has changed in a day is read before every change of its rules.
create index policies_by_change on policies (tenant_id, updated_at);
