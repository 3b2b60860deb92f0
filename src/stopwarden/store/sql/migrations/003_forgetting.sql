-- Rows of the account may go, but only while a forgetting is open: a row of `forgetting`, which is put
-- in and taken out within the one transaction that deletes.

CREATE TABLE forgetting (began INTEGER NOT NULL) STRICT;

DROP TRIGGER record_line_stays;

CREATE TRIGGER record_line_stays BEFORE DELETE ON record_line
WHEN NOT EXISTS (SELECT 1 FROM forgetting) BEGIN
    SELECT RAISE(ABORT, 'the away record is append-only');
END;

DROP TRIGGER verdict_stays;

CREATE TRIGGER verdict_stays BEFORE DELETE ON verdict
WHEN NOT EXISTS (SELECT 1 FROM forgetting) BEGIN
    SELECT RAISE(ABORT, 'the journal of verdicts is append-only');
END;
