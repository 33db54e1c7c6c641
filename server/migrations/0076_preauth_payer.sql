-- The salt that opens the receipt of a close, and the address that a pre-authorised payment will come from.
alter table preauths add column receipt_salt text, add column payer text;
