-- Processes: one row each, what happened (history), what it took (attempt), what has arrived
-- (inbox), what was noteworthy (event).

CREATE TYPE commandbus.process_status AS ENUM ('PENDING', 'EXECUTING', 'WAITING_FOR_REPLY',
    'WAITING_FOR_ASYNC', 'WAITING_FOR_RETRY', 'WAITING_FOR_TSQ', 'COMPENSATING', 'COMPENSATED',
    'COMPLETED', 'CANCELED', 'FAILED');

CREATE TYPE commandbus.execution_model AS ENUM ('PROCESS_STEP', 'STEP_BASED');

CREATE TYPE commandbus.process_phase AS ENUM ('FORWARD', 'COMPENSATING');

CREATE TYPE commandbus.record_kind AS ENUM
    ('STEP', 'WAIT', 'SIDE_EFFECT', 'COMMAND', 'COMPENSATION', 'RESPONSE', 'VERSION', 'OPERATOR');

-- STARTED: an attempt began and has no end yet. RETRY: it failed and comes again. WAITING: for a
-- reply or a condition. ABANDONED: left behind with an outcome that asks for nothing more. CAUGHT:
-- it failed, and the code has gone on with that; the result says what it was: {"kind", "code",
-- "message", "reply"}.
CREATE TYPE commandbus.record_status AS ENUM ('STARTED', 'RETRY', 'WAITING', 'COMPLETED', 'FAILED',
    'ABANDONED', 'CAUGHT');

CREATE TYPE commandbus.inbox_kind AS ENUM ('RESPONSE', 'REPLY', 'OPERATOR');

-- What workers have registered: who may start what, and where it runs.
CREATE TABLE commandbus.process_type (
    process_type    text        PRIMARY KEY,
    domain          text        NOT NULL REFERENCES commandbus.domain,
    execution_model commandbus.execution_model NOT NULL DEFAULT 'PROCESS_STEP',
    -- The highest that a worker has registered.
    version         integer     NOT NULL CHECK (version > 0),
    reply_queue     text        NOT NULL REFERENCES commandbus.reply_queue,
    -- Those it had before: processes that were started then still get their replies there.
    former_queues   text[]      NOT NULL DEFAULT '{}',
    -- Fields whose values people are not shown, wherever in the data of its processes they are.
    redact          text[]      NOT NULL DEFAULT '{}',
    -- The responses that it takes, by name, each with what its payload may hold: see
    -- check_response. NULL: no worker has said, and any is kept.
    responses       jsonb       CHECK (jsonb_typeof(responses) = 'object'),
    registered_at   timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now()
);

-- Who beside operators and workers may bring which response: allow_response and forbid_response
-- write it. A role and not its name: a right follows a role that is renamed, and is nobody's when
-- the role is dropped. No reference to process_type: rights are given before the first worker
-- registers the type.
CREATE TABLE commandbus.responder (
    process_type text        NOT NULL,
    response     text        NOT NULL, -- '*': each of that type
    role         regrole     NOT NULL,
    allowed_by   text        NOT NULL DEFAULT session_user,
    allowed_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (process_type, response, role)
);

-- Fixed-width columns first, payloads last, as in command_metadata.
CREATE TABLE commandbus.process (
    process_id      uuid        NOT NULL,
    batch_id        uuid,
    -- The fence: grows at every claim, never reset.
    lease_no        bigint      NOT NULL DEFAULT 0,
    lease_until     timestamptz,
    -- How often it was settled: recognises a resend after a COMMIT whose answer was lost.
    settle_no       bigint      NOT NULL DEFAULT 0,
    -- When a worker should look at it next; NULL: when something arrives. While it is leased, the
    -- lease's end.
    wake_at         timestamptz,
    next_retry_at   timestamptz,
    next_wait_timeout_at timestamptz,
    deadline_at     timestamptz,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    completed_at    timestamptz,
    -- Set while it waits for an operator.
    tsq_at          timestamptz,
    -- At most so many bytes of text are read by a claim: states, records and inbox. Grows with
    -- everything that is written; measured_content says how much is really there, and corrects it
    -- (claim_processes, respond).
    content_bytes   bigint      NOT NULL DEFAULT 0,
    -- Claims since it was last settled: one that kills its workers must not do so for ever.
    unsettled       integer     NOT NULL DEFAULT 0,
    -- The last number given to something in its inbox.
    inbox_seq       integer     NOT NULL DEFAULT 0,
    -- The highest version of its type that wrote it; 0 before the first.
    version         integer     NOT NULL DEFAULT 0,
    status          commandbus.process_status NOT NULL,
    phase           commandbus.process_phase NOT NULL DEFAULT 'FORWARD',
    execution_model commandbus.execution_model NOT NULL,
    -- The deadline has had its effect, or an operator has set it aside.
    deadline_spent  boolean     NOT NULL DEFAULT false,
    -- What it waits for is the reply to a command.
    awaits_reply    boolean     NOT NULL DEFAULT false,
    domain          text        NOT NULL,
    process_type    text        NOT NULL,
    current_step    text,
    current_wait    text,
    lease_owner     text,
    reply_queue     text        NOT NULL,
    error_code      text,
    error_message   text,
    -- What it is on its way to while it still waits for the outcome of a command, and which end it
    -- takes when nothing is owed any more: {"to", "end", "code", "message"}.
    leaving         jsonb,
    initial_state   jsonb       NOT NULL,
    state           jsonb       NOT NULL,
    CONSTRAINT process_key PRIMARY KEY (process_id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0.05);

-- What is due, by type: a type that no worker knows is not in the way of the others. A row is in
-- one of the two: those whose worker died are found without walking through a backlog that is older
-- than they are.
CREATE INDEX process_wake ON commandbus.process (process_type, wake_at)
    WHERE wake_at IS NOT NULL AND lease_owner IS NULL;

CREATE INDEX process_leased ON commandbus.process (process_type, wake_at)
    WHERE wake_at IS NOT NULL AND lease_owner IS NOT NULL;

-- Lists and retention; rows arrive in time order. Few kilobytes, and free for the many updates.
CREATE INDEX process_created ON commandbus.process USING brin (created_at)
    WITH (pages_per_range = 16);

CREATE INDEX process_tsq ON commandbus.process (domain, tsq_at) WHERE tsq_at IS NOT NULL;

-- Those that wait without any timer, as a manager may: no other index has them. Rows get in and out
-- of it with a change of wake_at, which is indexed anyway.
CREATE INDEX process_idle ON commandbus.process (process_type)
    WHERE wake_at IS NULL AND tsq_at IS NULL AND completed_at IS NULL;

-- Counts of a batch, and "is one still open?". The end always moves wake_at too: no update is less
-- HOT for it.
CREATE INDEX process_batch ON commandbus.process (batch_id, completed_at)
    WHERE batch_id IS NOT NULL;

-- One row a record, never erased while the process is there. A step that begins, a wait, a command
-- is an open record first and gets its end in place.
CREATE TABLE commandbus.process_history (
    process_id    uuid        NOT NULL,
    command_id    uuid,        -- of a COMMAND, or of a COMPENSATION by command
    response_id   uuid,        -- of a RESPONSE, if its sender gave one
    at            timestamptz NOT NULL,
    -- When its present attempt began, or its present command was sent; NULL: at `at`, with the
    -- record.
    begun_at      timestamptz,
    finished_at   timestamptz,
    -- Of a wait or a command. The first one stays, whatever wakes the process.
    timeout_at    timestamptz,
    took_ms       double precision, -- the last attempt's run, as the worker measured it
    ordinal       integer     NOT NULL,
    attempts      integer     NOT NULL DEFAULT 0, -- begun since the last operator retry
    max_attempts  integer,     -- of a step; of a command, if its step says
    send_no       integer,     -- which command of this record, from 1
    -- RESPONSE: it was applied while that record was open. COMPENSATION: the record that it pays.
    -- WAIT of a manager: the response that ended it.
    during        integer,
    -- Of a step: an attempt before may have succeeded, and none has for certain.
    in_doubt      boolean,
    kind          commandbus.record_kind NOT NULL,
    status        commandbus.record_status NOT NULL,
    name          text        NOT NULL,
    domain        text,        -- where the command went
    command_type  text,
    worker        text,        -- who wrote it last: whose attempt it is
    error_code    text,
    error_message text,
    -- Of a command, a side effect, a version; the payload of a response or an operator's request.
    result        jsonb,
    opening       jsonb,       -- state fields changed before the record was opened
    patch         jsonb,       -- state fields changed by it
    -- What undoes it: {"inline":true} or {"domain","command_type","data"}
    owes          jsonb,
    PRIMARY KEY (process_id, ordinal)
) WITH (fillfactor = 85, autovacuum_vacuum_insert_scale_factor = 0.1);

-- Whether a response was there already. Few have an id, so this costs nothing where none is given.
CREATE INDEX process_history_response ON commandbus.process_history (process_id, response_id)
    WHERE response_id IS NOT NULL;

-- From a command to what its process made of it.
CREATE INDEX process_history_command ON commandbus.process_history (command_id)
    WHERE command_id IS NOT NULL;

-- What a record was before it was written over: an attempt that failed or has no end that anybody
-- knows (STARTED), and a command that was sent again. Append-only; a process that goes well has
-- none.
CREATE TABLE commandbus.process_attempt (
    id            bigint      GENERATED ALWAYS AS IDENTITY (CACHE 10),
    process_id    uuid        NOT NULL,
    command_id    uuid,
    at            timestamptz NOT NULL, -- when it began, or the command was sent
    ended_at      timestamptz,          -- NULL: nobody knows
    took_ms       double precision,
    ordinal       integer     NOT NULL,
    attempts      integer     NOT NULL,
    max_attempts  integer,
    send_no       integer,
    kind          commandbus.record_kind NOT NULL,
    status        commandbus.record_status NOT NULL,
    name          text        NOT NULL,
    domain        text,
    command_type  text,
    worker        text,
    error_code    text,
    error_message text,
    result        jsonb
) WITH (fillfactor = 100, autovacuum_vacuum_insert_scale_factor = 0.1);

CREATE INDEX process_attempt_process ON commandbus.process_attempt (process_id);

CREATE INDEX process_attempt_command ON commandbus.process_attempt (command_id)
    WHERE command_id IS NOT NULL;

-- What has arrived and no run has consumed yet. Numbered under the lock of the process row.
CREATE TABLE commandbus.process_inbox (
    process_id  uuid        NOT NULL,
    seq         integer     NOT NULL,
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    kind        commandbus.inbox_kind NOT NULL,
    response_id uuid,
    -- Of the response; RETRY, CANCEL or COMPLETE; a reply's outcome.
    name        text        NOT NULL,
    payload     jsonb       NOT NULL,
    PRIMARY KEY (process_id, seq)
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,
        autovacuum_vacuum_cost_delay = 0);

CREATE INDEX process_inbox_response ON commandbus.process_inbox (process_id, response_id)
    WHERE response_id IS NOT NULL;

-- What is worth telling beside the records: parkings, timeouts, deadlines, replies that ended
-- nothing or came too late. Append-only.
CREATE TABLE commandbus.process_event (
    id         bigint      GENERATED ALWAYS AS IDENTITY (CACHE 10),
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    process_id uuid        NOT NULL,
    command_id uuid,        -- whose reply it was
    event      text        NOT NULL,
    step_name  text,
    worker     text,
    operator   text,
    db_user    text,
    details    jsonb
);

CREATE INDEX process_event_process ON commandbus.process_event (process_id);

CREATE INDEX process_event_command ON commandbus.process_event (command_id)
    WHERE command_id IS NOT NULL;

-- A process as a worker reads it. The columns are numbered in process_rows.c. Moments are
-- milliseconds since 1970 on the clock commandbus.now(). too_large: NULL, or how many bytes it
-- holds, more than content_limit; then there are no states and no history, and of the inbox only
-- what operators have decided. more: others that are due were left for the next claim because of
-- their size.
CREATE TYPE commandbus.process_row AS (
    process_id uuid, domain text, process_type text, reply_queue text, status text, phase text,
    error_code text, error_message text, current_step text, current_wait text, version integer,
    lease_no bigint, settle_no bigint, unsettled integer, inbox_seq integer, now_ms bigint,
    created_ms bigint, deadline_ms bigint, retry_ms bigint, wait_timeout_ms bigint,
    deadline_spent boolean, leaving jsonb, initial_state jsonb, state jsonb, history text,
    inbox text, waited_us bigint, content_limit bigint, too_large bigint, more boolean);

-- An item as process/ writes it. Durations and moments in milliseconds; a moment counts from 1970.
CREATE TYPE commandbus.process_outcome AS (
    process_id uuid, lease_no bigint, settle_no bigint, checkpoint boolean,
    vt_seconds double precision, version integer, status commandbus.process_status,
    phase commandbus.process_phase, step text, wait text, state jsonb, error_code text,
    error_message text, leaving jsonb, deadline_spent boolean, seen integer, consumed integer[],
    retry_ms double precision, retry_at_ms double precision, timeout_ms double precision,
    timeout_at_ms double precision, wake text, records jsonb, commands jsonb, cancels jsonb,
    events jsonb,
    -- In place of one that was refused: where the process is and was going to stays, and of what
    -- the run consumed only the operator's decision goes.
    refused boolean,
    -- What it waits for is the reply to a command.
    awaits_reply boolean);

CREATE TYPE commandbus.process_record AS (
    ordinal integer, kind commandbus.record_kind, status commandbus.record_status, name text,
    attempts integer, send_no integer, during integer, command_id uuid, response_id uuid,
    domain text, command_type text, timeout_ms double precision, timeout_at_ms double precision,
    took_ms double precision, error_code text, error_message text, result jsonb, opening jsonb,
    patch jsonb, owes jsonb, finished boolean, max_attempts integer, in_doubt boolean);
