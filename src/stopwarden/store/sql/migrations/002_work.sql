-- Reservations, the ledger, other trackers; what was offered to a session, and passed over; and which process it is.

ALTER TABLE session ADD COLUMN program INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN program_started TEXT NOT NULL DEFAULT '';
ALTER TABLE session ADD COLUMN program_seen INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session_state ADD COLUMN offered TEXT NOT NULL DEFAULT '[]';
ALTER TABLE session_state ADD COLUMN passed_over TEXT NOT NULL DEFAULT '[]';

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
