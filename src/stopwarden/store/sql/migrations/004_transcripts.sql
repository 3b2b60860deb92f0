-- The native agent's conversations: what each session was told and told, line by line.

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
