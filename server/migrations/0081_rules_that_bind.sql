-- What the rules of existing tenants mean from now on. The start prints each warning.
do $$
declare
  found_rules bigint;
begin
  found_rules := count(*) from mandates where status = 'active' and expires_at > now();
  if found_rules > 0 then
    raise warning '% active mandates bind every payment of their agent or tenant from now on, also payments that name none. GET /api/mandates lists them; revoke those that should not bind.', found_rules;
  end if;
  found_rules := count(*) from budgets where scope_type = 'session';
  found_rules := found_rules + (select count(*) from policies where status = 'active' and rules @? '$[*] ? (@.field == "session_id")');
  if found_rules > 0 then
    raise warning '% budgets or policies select by session: runs and loops of these tenants without session_id are refused from now on.', found_rules;
  end if;
  found_rules := count(*) from policies where status = 'active' and (constraints::text ~ '0x[0-9a-fA-F]{40}' or rules::text ~ '0x[0-9a-fA-F]{40}');
  if found_rules > 0 then
    raise warning '% policies name an address: pre-authorisations of these tenants without merchant.pay_to are refused from now on.', found_rules;
  end if;
  found_rules := count(*) from policies where status = 'active' and mode = 'enforce'
    and constraints ?| array['denied_instruments', 'allowed_instruments', 'denied_merchants', 'allowed_merchants', 'denied_agents', 'allowed_agents', 'allowed_hours_utc', 'max_notional_usdc', 'max_leverage'];
  if found_rules > 0 then
    raise warning '% enforced policies bind every trade that they match from now on, also trades that name no policy.', found_rules;
  end if;
  found_rules := count(*) from budgets;
  if found_rules > 0 then
    raise warning '% budgets count trades of the instrument spend from now on; set applies_to to leave them out.', found_rules;
  end if;
end $$;
