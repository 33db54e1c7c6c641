-- What opens the commitment of a close's receipt to the budgets and mandates that counted it, for a tenant that lost the answer.
alter table preauths add column receipt_counters jsonb;
