-- The whole schema, as all migrations together leave it (a test holds the two equal).
--
-- Instants are whole seconds since 1970-01-01T00:00:00Z, given by the program: no statement asks
-- SQLite for the time. Truth values are 0 and 1, lists are JSON texts, NULL is None. The columns of a
-- table that holds records of `store.port` or `core.events` are called as the records' fields.

-- Away periods, with the policy that the person left on.
CREATE TABLE away_period (
    id TEXT NOT NULL PRIMARY KEY,
    since INTEGER NOT NULL,
    until INTEGER,
    scope TEXT NOT NULL,
    copy TEXT NOT NULL,
    root TEXT NOT NULL,
    session TEXT NOT NULL,
    also_scripts INTEGER NOT NULL,
    until_done INTEGER NOT NULL,
    lists TEXT NOT NULL,
    ended_at INTEGER,
    ended_why TEXT NOT NULL,
    zone TEXT NOT NULL,
    policy TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What is known of a session besides its state.
CREATE TABLE session (
    id TEXT NOT NULL PRIMARY KEY,
    host TEXT NOT NULL,
    root TEXT NOT NULL,
    copy TEXT NOT NULL,
    title TEXT NOT NULL,
    entrypoint TEXT NOT NULL,
    host_version TEXT NOT NULL,
    permission_mode TEXT NOT NULL,
    transcript TEXT NOT NULL,
    first_event_at INTEGER NOT NULL,
    last_event_at INTEGER NOT NULL,
    last_event TEXT NOT NULL,
    chain_started_at INTEGER NOT NULL,
    asked_safety_wake TEXT NOT NULL,
    waits_on_person TEXT NOT NULL,
    waits_since INTEGER,
    idle_since INTEGER,
    error TEXT NOT NULL,
    error_at INTEGER,
    error_resets_at INTEGER,
    errors_in_a_row INTEGER NOT NULL,
    ended_at INTEGER,
    ended_why TEXT NOT NULL,
    last_verdict INTEGER NOT NULL,
    boot TEXT NOT NULL,
    answered_ticks INTEGER NOT NULL,
    wall_minus_boot INTEGER NOT NULL
, program INTEGER NOT NULL DEFAULT 0, program_started TEXT NOT NULL DEFAULT '', program_seen INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;

-- What a session's next stop is judged by; replaced whole, at the expected revision alone.
CREATE TABLE session_state (
    id TEXT NOT NULL PRIMARY KEY,
    fingerprint TEXT,
    blocks INTEGER NOT NULL,
    blocks_without_tools INTEGER NOT NULL,
    tool_used INTEGER NOT NULL,
    recent_blocks TEXT NOT NULL,
    period TEXT NOT NULL,
    period_blocks INTEGER NOT NULL,
    bound TEXT NOT NULL,
    next_look INTEGER,
    next_look_latest INTEGER,
    wake_started INTEGER NOT NULL,
    unchanged_looks INTEGER NOT NULL,
    reached TEXT NOT NULL,
    graced TEXT NOT NULL,
    handed_back TEXT NOT NULL,
    compacted INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    revision INTEGER NOT NULL
, offered TEXT NOT NULL DEFAULT '[]', passed_over TEXT NOT NULL DEFAULT '[]') STRICT, WITHOUT ROWID;

-- Wakes as first seen. No prompt text, only its digest.
CREATE TABLE wake (
    session TEXT NOT NULL,
    id TEXT NOT NULL,
    schedule TEXT NOT NULL,
    kind TEXT NOT NULL,
    first_seen INTEGER NOT NULL,
    fires_at INTEGER,
    fires_said_at INTEGER,
    max_age INTEGER,
    prompt_digest TEXT NOT NULL,
    gone_at INTEGER,
    PRIMARY KEY (session, id)
) STRICT, WITHOUT ROWID;

-- Open while `stopwarden forget` deletes, and only within its transaction: the account's triggers ask for it.
CREATE TABLE forgetting (began INTEGER NOT NULL) STRICT;

-- The away record. Append-only: the triggers below refuse every other change.
CREATE TABLE record_line (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    session TEXT NOT NULL,
    period TEXT NOT NULL,
    item TEXT NOT NULL,
    text TEXT NOT NULL
) STRICT;

CREATE INDEX record_line_at ON record_line (at);
CREATE INDEX record_line_period ON record_line (period);

CREATE TRIGGER record_line_keeps_its_words BEFORE UPDATE ON record_line BEGIN
    SELECT RAISE(ABORT, 'the away record is append-only');
END;

CREATE TRIGGER record_line_stays BEFORE DELETE ON record_line
WHEN NOT EXISTS (SELECT 1 FROM forgetting) BEGIN
    SELECT RAISE(ABORT, 'the away record is append-only');
END;

CREATE TRIGGER record_line_is_not_replaced BEFORE INSERT ON record_line
WHEN EXISTS (SELECT 1 FROM record_line WHERE seq = NEW.seq) BEGIN
    SELECT RAISE(ABORT, 'the away record is append-only');
END;

-- The journal of verdicts. Append-only as well; one verdict a nonce of a session.
CREATE TABLE verdict (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    session TEXT NOT NULL,
    period TEXT NOT NULL,
    nonce TEXT NOT NULL,
    kind TEXT NOT NULL,
    rule TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX verdict_nonce ON verdict (session, nonce) WHERE nonce <> '';
CREATE INDEX verdict_at ON verdict (at);
CREATE INDEX verdict_period ON verdict (period);

CREATE TRIGGER verdict_keeps_its_words BEFORE UPDATE ON verdict BEGIN
    SELECT RAISE(ABORT, 'the journal of verdicts is append-only');
END;

CREATE TRIGGER verdict_stays BEFORE DELETE ON verdict
WHEN NOT EXISTS (SELECT 1 FROM forgetting) BEGIN
    SELECT RAISE(ABORT, 'the journal of verdicts is append-only');
END;

CREATE TRIGGER verdict_is_not_replaced BEFORE INSERT ON verdict
WHEN EXISTS (SELECT 1 FROM verdict WHERE id = NEW.id)
    OR EXISTS (SELECT 1 FROM verdict WHERE session = NEW.session AND nonce = NEW.nonce AND nonce <> '') BEGIN
    SELECT RAISE(ABORT, 'the journal of verdicts is append-only');
END;

-- Questions and permission prompts refused while the person was away, each once a period.
CREATE TABLE parked (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    session TEXT NOT NULL,
    period TEXT NOT NULL,
    kind TEXT NOT NULL,
    digest TEXT NOT NULL,
    text TEXT NOT NULL,
    options TEXT NOT NULL,
    times INTEGER NOT NULL,
    chosen TEXT NOT NULL,
    answer TEXT NOT NULL,
    answered_at INTEGER,
    delivered_at INTEGER,
    UNIQUE (session, period, digest)
) STRICT;

-- What a list of work looked like when last read, by its source.
CREATE TABLE list_snapshot (
    source TEXT NOT NULL PRIMARY KEY,
    body TEXT NOT NULL
) STRICT;

-- Texts that verdicts refer to, each once, by digest.
CREATE TABLE snapshot (
    digest TEXT NOT NULL PRIMARY KEY,
    body TEXT NOT NULL
) STRICT;

-- A session's own todos as its host last reported them, as JSON.
CREATE TABLE host_todos (
    session TEXT NOT NULL PRIMARY KEY,
    body TEXT NOT NULL
) STRICT;

-- Host facts and switches.
CREATE TABLE fact (
    subject TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (subject, name)
) STRICT, WITHOUT ROWID;

-- The newest keeper of each session.
CREATE TABLE keeper (
    session TEXT NOT NULL PRIMARY KEY,
    pid INTEGER NOT NULL,
    started TEXT NOT NULL,
    generation INTEGER NOT NULL,
    at INTEGER NOT NULL,
    woke_at INTEGER
) STRICT, WITHOUT ROWID;

-- Who holds which item. A row stays when the hold is over: its token goes on rising at the next grant.
CREATE TABLE reservation (
    place TEXT NOT NULL,
    item TEXT NOT NULL,
    project TEXT NOT NULL,
    session TEXT NOT NULL,
    copy TEXT NOT NULL,
    root TEXT NOT NULL,
    title TEXT NOT NULL,
    claimed_at INTEGER NOT NULL,
    expires_at INTEGER,
    lease INTEGER NOT NULL,
    token INTEGER NOT NULL,
    first_seen INTEGER,
    granted_at INTEGER NOT NULL,
    released_at INTEGER,
    terminal INTEGER NOT NULL,
    footprint TEXT NOT NULL,
    taken_from TEXT NOT NULL,
    nonce TEXT NOT NULL,
    PRIMARY KEY (place, item)
) STRICT, WITHOUT ROWID;

CREATE INDEX reservation_held ON reservation (project) WHERE released_at IS NULL;
CREATE INDEX reservation_of_copy ON reservation (copy) WHERE released_at IS NULL;
CREATE INDEX reservation_of_session ON reservation (session) WHERE released_at IS NULL;

CREATE TRIGGER reservation_token_rises_by_one BEFORE UPDATE ON reservation
WHEN NEW.token NOT BETWEEN OLD.token AND OLD.token + 1
    OR (NEW.token = OLD.token AND NEW.session <> OLD.session) BEGIN
    SELECT RAISE(ABORT, 'a grant has the next token');
END;

CREATE TRIGGER reservation_stays BEFORE DELETE ON reservation BEGIN
    SELECT RAISE(ABORT, 'a token is never given twice');
END;

CREATE TRIGGER reservation_is_made_with_paths BEFORE INSERT ON reservation
WHEN json_type(NEW.footprint) <> 'array'
    OR EXISTS (SELECT 1 FROM json_each(NEW.footprint) WHERE type <> 'text') BEGIN
    SELECT RAISE(ABORT, 'a footprint is a list of paths');
END;

CREATE TRIGGER reservation_keeps_paths BEFORE UPDATE OF footprint ON reservation
WHEN json_type(NEW.footprint) <> 'array'
    OR EXISTS (SELECT 1 FROM json_each(NEW.footprint) WHERE type <> 'text') BEGIN
    SELECT RAISE(ABORT, 'a footprint is a list of paths');
END;

-- The ledger: work of a project that stands on no list. `needs` are numbers of items to be done first.
CREATE TABLE ledger_item (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    project TEXT NOT NULL,
    title TEXT NOT NULL,
    state TEXT NOT NULL,
    was TEXT NOT NULL,
    changed_at INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    needs TEXT NOT NULL,
    waits_on TEXT NOT NULL,
    why TEXT NOT NULL,
    verify TEXT NOT NULL,
    verified_at INTEGER,
    failure TEXT NOT NULL,
    assigned TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    done_by TEXT NOT NULL
) STRICT;

CREATE INDEX ledger_item_ready ON ledger_item (project, priority, created_at, number) WHERE state = 'open';
CREATE INDEX ledger_item_assigned ON ledger_item (assigned) WHERE assigned <> '';

-- Other trackers that are read, never written.
CREATE TABLE tracker (
    project TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    command TEXT NOT NULL,
    root TEXT NOT NULL,
    read_at INTEGER,
    failed_at INTEGER,
    why TEXT NOT NULL,
    PRIMARY KEY (project, name)
) STRICT, WITHOUT ROWID;

-- What a tracker said when it was last read.
CREATE TABLE tracked_item (
    project TEXT NOT NULL,
    tracker TEXT NOT NULL,
    id TEXT NOT NULL,
    title TEXT NOT NULL,
    state TEXT NOT NULL,
    priority INTEGER NOT NULL,
    blocked INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (project, tracker, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE conversation (
    id TEXT NOT NULL PRIMARY KEY,
    cwd TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    model TEXT NOT NULL,
    mode TEXT NOT NULL,
    title TEXT NOT NULL,
    parent TEXT NOT NULL,
    ended_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX conversation_in ON conversation (cwd, updated_at);

-- `at` is milliseconds; `number` rises by one in each session; `body` is JSON.
CREATE TABLE transcript_line (
    session TEXT NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    entry TEXT NOT NULL,
    turn TEXT NOT NULL,
    chain INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session, number)
) STRICT;

CREATE TRIGGER transcript_is_append_only BEFORE UPDATE ON transcript_line BEGIN
    SELECT RAISE(ABORT, 'a transcript is append-only');
END;
