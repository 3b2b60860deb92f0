-- Every statement of forgetting, by name. `temp.going_period` and `temp.going_session` are filled by the
-- program (see `store.forgetting`). Rows that belong to a period go with it; rows of no known period go
-- by their instant; of one session alone, if one is named.

-- name: verdicts_going
-- the verdicts that go: number, instant, bytes
SELECT id, at, octet_length(body) + 200 FROM verdict
WHERE (:session IS NULL OR session = :session)
    AND (period IN (SELECT id FROM temp.going_period)
        OR (at < :loose AND period NOT IN (SELECT id FROM away_period)))
ORDER BY id;

-- name: lines_going
-- the lines of the record that go: number, instant, bytes; what says that something was forgotten stays
SELECT seq, at, octet_length(text) + 100 FROM record_line
WHERE kind <> 'forgotten'
    AND (:session IS NULL OR session = :session)
    AND (period IN (SELECT id FROM temp.going_period)
        OR (at < :loose AND period NOT IN (SELECT id FROM away_period)))
ORDER BY seq;

-- name: sizes
-- about how many bytes each period's verdicts and lines take
SELECT period, sum(bytes) FROM (
    SELECT period, octet_length(body) + 200 AS bytes FROM verdict
    UNION ALL SELECT period, octet_length(text) + 100 FROM record_line)
GROUP BY period;

-- name: questions_going
-- the parked questions that go: number, instant, whether it needs no answer any more
SELECT id, at, answered_at IS NOT NULL OR kind <> 'question' FROM parked
WHERE (:session IS NULL OR session = :session)
    AND (period IN (SELECT id FROM temp.going_period)
        OR (at < :loose AND period NOT IN (SELECT id FROM away_period)))
ORDER BY id;

-- name: sessions_named_by_what_goes
-- the sessions that verdicts or lines that go are of
SELECT session FROM verdict WHERE period IN (SELECT id FROM temp.going_period)
UNION SELECT session FROM record_line WHERE period IN (SELECT id FROM temp.going_period);

-- name: sessions_named_by_what_stays
-- the sessions that verdicts, lines, open periods, live holds and unfinished items keep
SELECT session FROM verdict
WHERE NOT ((:session IS NULL OR session = :session)
    AND (period IN (SELECT id FROM temp.going_period)
        OR (at < :loose AND period NOT IN (SELECT id FROM away_period))))
UNION SELECT session FROM record_line
WHERE kind <> 'forgotten' AND NOT ((:session IS NULL OR session = :session)
    AND (period IN (SELECT id FROM temp.going_period)
        OR (at < :loose AND period NOT IN (SELECT id FROM away_period))))
UNION SELECT session FROM away_period WHERE ended_at IS NULL
UNION SELECT session FROM reservation WHERE released_at IS NULL
UNION SELECT assigned FROM ledger_item WHERE state NOT IN ('done', 'dropped');

-- name: sessions_known
-- every session that anything is stored of, and when it was last heard of
SELECT id, last_event_at FROM session
UNION SELECT id, 0 FROM session_state WHERE id NOT IN (SELECT id FROM session)
UNION SELECT session, 0 FROM wake WHERE session NOT IN (SELECT id FROM session)
UNION SELECT session, 0 FROM host_todos WHERE session NOT IN (SELECT id FROM session)
UNION SELECT session, 0 FROM keeper WHERE session NOT IN (SELECT id FROM session);

-- name: ledger_going
-- finished items of the ledger that go
SELECT number FROM ledger_item WHERE state IN ('done', 'dropped') AND changed_at < :finished;

-- name: holds_going
-- released reservations whose words go
SELECT count(*) FROM reservation
WHERE released_at IS NOT NULL AND (released_at < :finished OR session IN (SELECT id FROM temp.going_session))
    AND (title <> '' OR root <> '' OR footprint <> '[]' OR nonce <> '' OR taken_from <> '');

-- name: open_forgetting
-- from here on the triggers let deletes pass, until close_forgetting in the same transaction
INSERT INTO forgetting (began) VALUES (:now);

-- name: close_forgetting
-- the account is append-only again
DELETE FROM forgetting;

-- name: forget_verdict
-- one verdict
DELETE FROM verdict WHERE id = :id;

-- name: forget_line
-- one line of the record
DELETE FROM record_line WHERE seq = :id;

-- name: tell
-- the line that says what was forgotten, under a number of its own or the one it had; tells its number
INSERT INTO record_line (seq, at, kind, session, period, item, text)
VALUES (:seq, :at, 'forgotten', '', '', '', :text)
RETURNING seq;

-- name: forget_question
-- one parked question
DELETE FROM parked WHERE id = :id;

-- name: list_sources
-- how the lists' snapshots are called, and for which period the newest was taken
SELECT source, CASE WHEN source LIKE 'newest %' THEN body ELSE '' END FROM list_snapshot;

-- name: forget_list_snapshot
-- one list's snapshot
DELETE FROM list_snapshot WHERE source = :source;

-- name: forget_wakes
-- the wakes of sessions that go
DELETE FROM wake WHERE session IN (SELECT id FROM temp.going_session);

-- name: forget_states
-- the states of sessions that go
DELETE FROM session_state WHERE id IN (SELECT id FROM temp.going_session);

-- name: forget_host_todos
-- the todos of sessions that go
DELETE FROM host_todos WHERE session IN (SELECT id FROM temp.going_session);

-- name: forget_keepers
-- the keepers of sessions that go
DELETE FROM keeper WHERE session IN (SELECT id FROM temp.going_session);

-- name: fact_names
-- how facts are called, but for those of everybody and our own
SELECT subject, name FROM fact WHERE name <> 'all' AND subject NOT IN ('spool', 'forgetting');

-- name: forget_fact
-- one fact
DELETE FROM fact WHERE subject = :subject AND name = :name;

-- name: forget_sessions
-- the sessions that go
DELETE FROM session WHERE id IN (SELECT id FROM temp.going_session);

-- name: forget_periods
-- the periods that go; one that has not ended stays whatever was chosen
DELETE FROM away_period WHERE id IN (SELECT id FROM temp.going_period) AND ended_at IS NOT NULL;

-- name: empty_holds
-- a released reservation keeps its item and its token: a token is never given twice
UPDATE reservation SET title = '', root = '', footprint = '[]', nonce = '', taken_from = ''
WHERE released_at IS NOT NULL AND (released_at < :finished OR session IN (SELECT id FROM temp.going_session));

-- name: forget_ledger_item
-- one finished item of the ledger
DELETE FROM ledger_item WHERE number = :id AND state IN ('done', 'dropped');

-- name: forget_tracked
-- what other trackers said; they are asked again
DELETE FROM tracked_item;

-- name: trackers_unread
-- no tracker has been read
UPDATE tracker SET read_at = NULL, failed_at = NULL, why = '';

-- name: bodies
-- verdicts after a number whose bodies name texts by digest
SELECT id, body FROM verdict
WHERE id > :after AND (instr(body, '"lines"') > 0 OR instr(body, '"snapshot"') > 0)
ORDER BY id LIMIT :limit;

-- name: texts
-- every kept text's digest and bytes
SELECT digest, octet_length(body) FROM snapshot;

-- name: forget_text
-- one kept text
DELETE FROM snapshot WHERE digest = :digest;

-- name: dated_after
-- verdicts and lines dated after an instant
SELECT (SELECT count(*) FROM verdict WHERE at > :now)
    + (SELECT count(*) FROM record_line WHERE at > :now AND kind <> 'forgotten');
