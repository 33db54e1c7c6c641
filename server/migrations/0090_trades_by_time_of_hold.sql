-- `rh_runs_held` finds executed trades by the time of their hold; nothing reads them by the time of their request.
drop index rh_runs_executed;
