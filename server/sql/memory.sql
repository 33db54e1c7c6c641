-- The words of a text as a query that any of them answers. A task can be a book: its first words are asked for.
create or replace function any_word_of(said text) returns tsquery language sql immutable as $$
  select string_agg('''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''', ' | ')::tsquery
  from (select lexeme from unnest(to_tsvector('english', left(said, 8000))) order by positions[1] limit 64) as asked
$$;

-- A fresh memory counts twice what a very old one does; half of that difference is gone after two weeks.
create or replace function freshness(created_at timestamptz, at timestamptz) returns float8 language sql immutable as $$
  select (1 + power(0.5::float8, greatest(0, extract(epoch from at - created_at)::float8) / 1209600)) / 2
$$;

-- i: {id, tenant_id, session_id, agent_id, run_id, content, metadata, created_at, expires_at}
create or replace function write_memory(i jsonb) returns void language sql as $$
  insert into memories (id, tenant_id, session_id, agent_id, run_id, content, metadata, created_at, expires_at)
  values (i->>'id', i->>'tenant_id', i->>'session_id', i->>'agent_id', i->>'run_id', i->>'content', i->'metadata',
          (i->>'created_at')::timestamptz, (i->>'expires_at')::timestamptz)
$$;
