-- The tables of commands, batches, audit and the fleet. Those of processes follow in their own
-- file.

CREATE TABLE commandbus.domain (
    domain        text        PRIMARY KEY,
    -- 0: no limit over the fleet. Otherwise receive() keeps live leases at or below it.
    fleet_limit   integer     NOT NULL DEFAULT 0 CHECK (fleet_limit >= 0),
    payload_limit integer     NOT NULL DEFAULT 1048576 CHECK (payload_limit > 0),
    -- The highest number of a place: above the limit while more is in progress than that.
    places        integer     NOT NULL DEFAULT 0,
    -- The most that a process may hold, in bytes of text: its records, its inbox and its states. A
    -- run needs about ten times as much memory, so 8 MiB fit the smallest worker we ship (256 MiB);
    -- raise it only for larger ones. Responses are taken up to three quarters of it, and a state
    -- may grow to one.
    content_limit bigint      NOT NULL DEFAULT 8388608 CHECK (content_limit >= 1048576),
    created_at    timestamptz NOT NULL DEFAULT now()
);

-- Where replies and completion messages may go; a commands queue is never among them.
CREATE TABLE commandbus.reply_queue (
    queue_name text        PRIMARY KEY,
    domain     text        NOT NULL REFERENCES commandbus.domain,
    -- Workers take what is in it for replies to processes (register_process_type): nobody else has
    -- replies sent there. Stays when the type gets another queue, for commands still reply to this.
    of_processes boolean   NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- An enum and not a checked text: the server parses a CHECK anew for each statement, which at one
-- command a statement costs as much as an index insertion.
CREATE TYPE commandbus.command_status AS ENUM
    ('PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'CANCELED', 'IN_TROUBLESHOOTING_QUEUE');

-- One row a command, from send to retention. Fixed-width columns come first (no padding), the
-- payload last: an update that leaves it alone writes a short WAL record.
CREATE TABLE commandbus.command_metadata (
    command_id      uuid        NOT NULL,
    correlation_id  uuid        NOT NULL,
    batch_id        uuid,
    -- The process that sent it, NULL for everybody else's. Only settle_processes writes it, in the
    -- transaction that writes the process's record of the command: a reply counts by it.
    process_id      uuid,
    -- The one message in the domain's queue that stands for this command. Kept after the end, so
    -- that a message which outlived its command is recognised.
    msg_id          bigint      NOT NULL,
    -- The fence: grows at every claim, never reset.
    lease_no        bigint      NOT NULL DEFAULT 0,
    lease_until     timestamptz,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    completed_at    timestamptz,
    -- Set while the command is in the troubleshooting queue.
    tsq_at          timestamptz,
    -- The budget: runs charged against max_attempts since the last operator retry.
    status          commandbus.command_status NOT NULL,
    attempts        integer     NOT NULL DEFAULT 0,
    -- NULL until the first claim when the sender left it to the domain.
    max_attempts    integer,
    timeout_seconds integer,
    domain          text        NOT NULL,
    command_type    text        NOT NULL,
    reply_to        text,
    lease_owner     text,
    error_type      text,
    error_code      text,
    error_message   text,
    result          jsonb,
    headers         jsonb,
    data            jsonb       NOT NULL
) WITH (
    -- Every command is updated at least twice (claim, settle), and no index below holds a column
    -- that these change: with half a page free both are HOT and touch no index.
    fillfactor = 50,
    -- The dead versions are pruned by HOT; vacuum is for what retries and retention leave.
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05
);

-- The duplicate check, and every look-up by id. command_id first: it decides the comparison.
CREATE UNIQUE INDEX command_metadata_key ON commandbus.command_metadata (command_id, domain);

-- From a claimed message to its command. Ascending, so insertion stays on the rightmost page.
CREATE INDEX command_metadata_message ON commandbus.command_metadata (msg_id, domain);

-- Lists by time, and retention from the oldest on.
CREATE INDEX command_metadata_created ON commandbus.command_metadata (created_at);

-- Counts of a batch, and "is one still open?", asked from the last sent backwards.
CREATE INDEX command_metadata_batch ON commandbus.command_metadata (batch_id, msg_id)
    WHERE batch_id IS NOT NULL;

-- The troubleshooting queue, oldest first. On tsq_at and not on status: a predicate on status
-- would make every transition of every command a non-HOT update.
CREATE INDEX command_metadata_tsq ON commandbus.command_metadata (domain, tsq_at)
    WHERE tsq_at IS NOT NULL;

-- Append-only, one row a transition. No primary key: nothing refers to a row, and a second index
-- would cost more than everything else about the insert.
CREATE TABLE commandbus.audit (
    id         bigint      GENERATED ALWAYS AS IDENTITY (CACHE 100),
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    command_id uuid,
    lease_no   bigint,
    attempt    integer,
    domain     text        NOT NULL,
    event_type text        NOT NULL,
    worker     text,
    operator   text,
    -- The login of who sent or decided; a worker's rows name the worker.
    db_user    text,
    details    jsonb
) WITH (
    -- Never updated, so pages are filled; inserts alone must trigger the freeze that keeps
    -- anti-wraparound vacuums small.
    fillfactor = 100,
    autovacuum_vacuum_insert_scale_factor = 0.1
);

-- The trail of one command.
CREATE INDEX audit_command ON commandbus.audit (command_id);

-- Time ranges and retention: rows arrive in time order, so a few kilobytes are enough.
CREATE INDEX audit_at ON commandbus.audit USING brin (at) WITH (pages_per_range = 32);

CREATE TABLE commandbus.batch (
    batch_id     uuid        PRIMARY KEY,
    domain       text        NOT NULL,
    name         text,
    batch_type   text        NOT NULL CHECK (batch_type IN ('COMMAND', 'PROCESS')),
    status       text        NOT NULL CHECK (status IN
        ('PENDING', 'IN_PROGRESS', 'COMPLETED', 'COMPLETED_WITH_FAILURES')),
    custom_data  jsonb,
    reply_to     text,
    -- Frozen when the batch closes, NULL before: until then the rows are the count.
    total        integer,
    completed    integer,
    failed       integer,
    canceled     integer,
    created_at   timestamptz NOT NULL DEFAULT now(),
    started_at   timestamptz,
    completed_at timestamptz
) WITH (fillfactor = 70);

-- What housekeeping looks through.
CREATE INDEX batch_open ON commandbus.batch (created_at) WHERE completed_at IS NULL;

-- Asked by every claim: is there a batch that has not started?
CREATE INDEX batch_pending ON commandbus.batch (domain) WHERE status = 'PENDING';

-- The places of domains with a fleet_limit, one row a place, numbered from 1, taken and given back.
-- A holder that fell silent keeps its place until its lease and its handler's timeout are over,
-- also when the command was claimed again. Place 0: whoever of that kind runs on in a domain
-- without a limit; a limit that is set later counts it.
--
-- Each change moves `turn` on, and every look asks for the newest turn first. While somebody holds
-- an old snapshot no dead version can be removed, and an index on an unchanging key would walk over
-- all of them.
CREATE TABLE commandbus.fleet_place (
    turn            bigint      NOT NULL DEFAULT 0,
    -- Who holds it: NULLs when it was given back.
    lease_no        bigint,
    held_until      timestamptz,
    command_id      uuid,
    place           integer     NOT NULL,
    timeout_seconds integer,
    domain          text        NOT NULL,
    worker          text
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

CREATE INDEX fleet_place_turn ON commandbus.fleet_place (domain, place, turn);

CREATE INDEX fleet_place_holder ON commandbus.fleet_place (command_id, lease_no, turn)
    WHERE command_id IS NOT NULL;

-- Who sleeps on a queue: a sender notifies only then. Unlogged: a crash wakes everybody anyway.
CREATE UNLOGGED TABLE commandbus.sleeper (
    queue_name text        NOT NULL,
    worker     text        NOT NULL,
    expires_at timestamptz NOT NULL,
    -- The worker first: who asks for a queue is to take the other index.
    PRIMARY KEY (worker, queue_name)
) WITH (
    -- A handful of rows rewritten all day: leave room, vacuum by count.
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500
);

-- Is somebody asleep? Asked by every send: by time, so that none of the dead is looked at.
CREATE INDEX sleeper_asleep ON commandbus.sleeper (queue_name, expires_at);

-- Since when this server has served without a crash or a promotion. Unlogged, so that recovery
-- empties it: the first who claims then writes when that was, which no function of PostgreSQL
-- tells.
CREATE UNLOGGED TABLE commandbus.uptime (
    only_row boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
    since    timestamptz NOT NULL
);

INSERT INTO commandbus.uptime (since) VALUES ('-infinity');

-- What one instance of the fleet does for all, and when it is to be done next.
CREATE TABLE commandbus.chore (
    chore   text        PRIMARY KEY,
    next_at timestamptz NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Command queues that somebody took messages out of by hand, a row a statement, until housekeeping
-- has looked for commands without a message.
CREATE TABLE commandbus.touched_queue (
    queue_name text        NOT NULL,
    at         timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Heartbeats of instances: what `commandbus fleet` shows.
CREATE TABLE commandbus.worker (
    worker       text        PRIMARY KEY,
    details      jsonb       NOT NULL DEFAULT '{}',
    started_at   timestamptz NOT NULL DEFAULT now(),
    heartbeat_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- One row: how far tests have moved the clock of process timers.
CREATE TABLE commandbus.clock (
    only_row   boolean  PRIMARY KEY DEFAULT true CHECK (only_row),
    moved_by   interval NOT NULL DEFAULT '0'
);

INSERT INTO commandbus.clock DEFAULT VALUES;

-- How a command looks in send_many, create_batch and files of JSON lines: send's arguments.
CREATE TYPE commandbus.new_command AS (
    domain text, command_type text, data jsonb, command_id uuid, correlation_id uuid, reply_to text,
    max_attempts integer, delay_seconds double precision, timeout_seconds integer, batch_id uuid,
    headers jsonb);
