-- A full-text query that any of the text's first 64 words matches. A task can be long, so the rest is ignored.
create or replace function any_word_query(source_text text) returns tsquery language sql immutable as $$
  select string_agg('''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''', ' | ')::tsquery
  from (select lexeme from unnest(to_tsvector('english', left(source_text, 8000))) order by positions[1] limit 64) as first_lexemes
$$;

-- A new memory weighs twice as much as a very old one, with a half-life of two weeks.
create or replace function freshness(created_at timestamptz, at timestamptz) returns float8 language sql immutable as $$
  select (1 + power(0.5::float8, greatest(0, extract(epoch from at - created_at)::float8) / 1209600)) / 2
$$;

-- input: {id, tenant_id, session_id, agent_id, run_id, content, metadata, created_at, expires_at}
create or replace function write_memory(input jsonb) returns void language sql as $$
  insert into memories (id, tenant_id, session_id, agent_id, run_id, content, metadata, created_at, expires_at)
  values (input->>'id', input->>'tenant_id', input->>'session_id', input->>'agent_id', input->>'run_id', input->>'content', input->'metadata',
          (input->>'created_at')::timestamptz, (input->>'expires_at')::timestamptz)
$$;
