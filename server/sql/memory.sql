-- A full-text query that any of the text's first 64 words matches. A task can be long, so the rest is ignored.
create or replace function any_word_query(source_text text) returns tsquery language sql immutable as $$
  select string_agg('''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''', ' | ')::tsquery
  from (select lexeme from unnest(to_tsvector('english', left(source_text, 8000))) order by positions[1] limit 64) as first_lexemes
$$;

-- What a run might need of its session: the newest memories, and older ones that share a word with the task. `shared` has the words of the
-- task that a memory has, `related` those of `synonyms`, both as stems of the language `config`. English stems are stored with the memory; in
-- another language its first 600 characters are read, because this is done for every run of a session.
create or replace function recall_candidates(tenant text, session text, at timestamptz, config regconfig, task text, synonyms text, newest int, older int)
returns table (id text, created_at timestamptz, excerpt text, shared text[], related text[]) language sql stable as $$
  with asked as materialized (
    select array(select lexeme from unnest(to_tsvector(config, left(task, 8000))) order by positions[1] limit 64) as words,
           tsvector_to_array(to_tsvector(config, synonyms)) as synonyms
  ),
  candidates as materialized (
    (select memory.id from memories memory where memory.tenant_id = tenant and memory.session_id = session and memory.expires_at > at
     order by memory.id desc limit newest)
    union
    (select memory.id from memories memory
     where memory.tenant_id = tenant and memory.session_id = session and memory.expires_at > at
       and memory.words @@ (any_word_query(task || ' ' || synonyms) && quote_literal(tenant)::tsquery)
     order by memory.id desc limit older)
  ),
  texts as materialized (
    select memory.id, memory.created_at, left(memory.content, 400) as excerpt,
           case config when 'english'::regconfig then memory.words else to_tsvector(config, left(memory.content, 600)) end as stems
    from candidates join memories memory using (id)
  )
  select texts.id, texts.created_at, texts.excerpt,
         array(select word from unnest(asked.words) word where texts.stems @@ quote_literal(word)::tsquery),
         array(select word from unnest(asked.synonyms) word where texts.stems @@ quote_literal(word)::tsquery and not word = any (asked.words))
  from texts, asked
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
