-- Every statement of the store, by name. `:name` is a field of the record that is stored, or an
-- argument of the method; instants come from the program, never from SQLite's clock.
-- Reading a whole record asks for `*`: the store takes the columns that are fields of its record.

-- name: add_period
-- a new away period with its policy
INSERT INTO away_period (id, since, until, scope, copy, root, session, also_scripts, until_done, lists,
    ended_at, ended_why, zone, policy)
VALUES (:id, :since, :until, :scope, :copy, :root, :session, :also_scripts, :until_done, :lists,
    :ended_at, :ended_why, :zone, :policy);

-- name: period_known
-- whether there is a period of this id, open or ended
SELECT id FROM away_period WHERE id = :id;

-- name: end_period
-- ends a period that is open; tells its id if there was one
UPDATE away_period SET ended_at = :at, ended_why = :why
WHERE id = :id AND ended_at IS NULL
RETURNING id;

-- name: open_periods
-- the periods that have not ended
SELECT * FROM away_period WHERE ended_at IS NULL ORDER BY since, id;

-- name: periods
-- the periods that are open, or ended at or after an instant
SELECT * FROM away_period WHERE ended_at IS NULL OR ended_at >= :since ORDER BY since, id;

-- name: period_policy
-- the policy of one period
SELECT policy FROM away_period WHERE id = :id;

-- name: session
-- one session
SELECT * FROM session WHERE id = :id;

-- name: save_session
-- stores what is known of one session, whole
INSERT INTO session (id, host, root, copy, title, entrypoint, host_version, permission_mode, transcript,
    first_event_at, last_event_at, last_event, chain_started_at, asked_safety_wake, waits_on_person, waits_since,
    idle_since, error, error_at, error_resets_at, errors_in_a_row, ended_at, ended_why, last_verdict, boot,
    answered_ticks, wall_minus_boot, program, program_started, program_seen)
VALUES (:id, :host, :root, :copy, :title, :entrypoint, :host_version, :permission_mode, :transcript,
    :first_event_at, :last_event_at, :last_event, :chain_started_at, :asked_safety_wake, :waits_on_person, :waits_since,
    :idle_since, :error, :error_at, :error_resets_at, :errors_in_a_row, :ended_at, :ended_why, :last_verdict, :boot,
    :answered_ticks, :wall_minus_boot, :program, :program_started, :program_seen)
ON CONFLICT (id) DO UPDATE SET
    host = excluded.host, root = excluded.root, copy = excluded.copy, title = excluded.title,
    entrypoint = excluded.entrypoint, host_version = excluded.host_version,
    permission_mode = excluded.permission_mode, transcript = excluded.transcript,
    first_event_at = excluded.first_event_at, last_event_at = excluded.last_event_at,
    last_event = excluded.last_event, chain_started_at = excluded.chain_started_at,
    asked_safety_wake = excluded.asked_safety_wake, waits_on_person = excluded.waits_on_person,
    waits_since = excluded.waits_since, idle_since = excluded.idle_since, error = excluded.error,
    error_at = excluded.error_at, error_resets_at = excluded.error_resets_at,
    errors_in_a_row = excluded.errors_in_a_row, ended_at = excluded.ended_at, ended_why = excluded.ended_why,
    last_verdict = excluded.last_verdict, boot = excluded.boot, answered_ticks = excluded.answered_ticks,
    wall_minus_boot = excluded.wall_minus_boot, program = excluded.program,
    program_started = excluded.program_started, program_seen = excluded.program_seen;

-- name: sessions
-- the sessions heard of at or after an instant
SELECT * FROM session WHERE last_event_at >= :since ORDER BY first_event_at, id;

-- name: state
-- one session's state
SELECT * FROM session_state WHERE id = :id;

-- name: save_state
-- stores one session's state if it is still at the expected revision (0: there is none); tells the new revision
INSERT INTO session_state (id, fingerprint, blocks, blocks_without_tools, tool_used, recent_blocks, period,
    period_blocks, bound, next_look, next_look_latest, wake_started, unchanged_looks, reached, graced, handed_back,
    offered, passed_over, compacted, cancelled, revision)
SELECT :id, :fingerprint, :blocks, :blocks_without_tools, :tool_used, :recent_blocks, :period,
    :period_blocks, :bound, :next_look, :next_look_latest, :wake_started, :unchanged_looks, :reached, :graced,
    :handed_back, :offered, :passed_over, :compacted, :cancelled, :expected_revision + 1
WHERE :expected_revision = coalesce((SELECT revision FROM session_state WHERE id = :id), 0)
ON CONFLICT (id) DO UPDATE SET
    fingerprint = excluded.fingerprint, blocks = excluded.blocks,
    blocks_without_tools = excluded.blocks_without_tools, tool_used = excluded.tool_used,
    recent_blocks = excluded.recent_blocks, period = excluded.period, period_blocks = excluded.period_blocks,
    bound = excluded.bound, next_look = excluded.next_look, next_look_latest = excluded.next_look_latest,
    wake_started = excluded.wake_started, unchanged_looks = excluded.unchanged_looks, reached = excluded.reached,
    graced = excluded.graced, handed_back = excluded.handed_back,
    offered = excluded.offered, passed_over = excluded.passed_over, compacted = excluded.compacted,
    cancelled = excluded.cancelled, revision = excluded.revision
RETURNING revision;

-- name: wakes
-- a session's wakes, those that are gone included
SELECT * FROM wake WHERE session = :session ORDER BY first_seen, id;

-- name: save_wake
-- stores one wake, whole
INSERT INTO wake (session, id, schedule, kind, first_seen, fires_at, fires_said_at, max_age, prompt_digest, gone_at)
VALUES (:session, :id, :schedule, :kind, :first_seen, :fires_at, :fires_said_at, :max_age, :prompt_digest, :gone_at)
ON CONFLICT (session, id) DO UPDATE SET
    schedule = excluded.schedule, kind = excluded.kind, first_seen = excluded.first_seen,
    fires_at = excluded.fires_at, fires_said_at = excluded.fires_said_at, max_age = excluded.max_age,
    prompt_digest = excluded.prompt_digest, gone_at = excluded.gone_at;

-- name: append_line
-- one more line of the away record
INSERT INTO record_line (at, kind, session, period, item, text)
VALUES (:at, :kind, :session, :period, :item, :text);

-- name: lines
-- the away record between two instants, both included
SELECT * FROM record_line WHERE at BETWEEN :since AND :until ORDER BY seq;

-- name: lines_of_period
-- one period's lines between two instants, both included
SELECT * FROM record_line WHERE period = :period AND at BETWEEN :since AND :until ORDER BY seq;

-- name: verdict_by_nonce
-- the verdict that a session's stop was given already
SELECT id FROM verdict WHERE session = :session AND nonce = :nonce AND nonce <> '';

-- name: append_verdict
-- one more verdict; tells its number
INSERT INTO verdict (at, session, period, nonce, kind, rule, body)
VALUES (:at, :session, :period, :nonce, :kind, :rule, :body)
RETURNING id;

-- name: verdict
-- one verdict
SELECT * FROM verdict WHERE id = :id;

-- name: verdicts
-- the verdicts between two instants, both included
SELECT * FROM verdict WHERE at BETWEEN :since AND :until ORDER BY id;

-- name: verdicts_of_period
-- one period's verdicts between two instants, both included
SELECT * FROM verdict WHERE period = :period AND at BETWEEN :since AND :until ORDER BY id;

-- name: bare_verdicts
-- one period's verdicts as the account of many nights reads them
SELECT id, at, session, period, kind, rule, body FROM verdict WHERE period = :period ORDER BY id;

-- name: asked_again
-- counts a question that is parked already in this period; tells its number
UPDATE parked SET times = times + 1
WHERE session = :session AND period = :period AND digest = :digest
RETURNING id;

-- name: park
-- a question not asked before; tells its number
INSERT INTO parked (at, session, period, kind, digest, text, options, times, chosen, answer, answered_at, delivered_at)
VALUES (:at, :session, :period, :kind, :digest, :text, :options, :times, :chosen, :answer, :answered_at, :delivered_at)
RETURNING id;

-- name: parked
-- parked questions, if wanted the unanswered alone
SELECT * FROM parked WHERE :open_only = 0 OR answered_at IS NULL ORDER BY id;

-- name: parked_of_session
-- one session's parked questions, if wanted the unanswered alone
SELECT * FROM parked WHERE session = :session AND (:open_only = 0 OR answered_at IS NULL) ORDER BY id;

-- name: save_parked
-- stores a parked question, whole; tells its number if there was one
UPDATE parked SET at = :at, session = :session, period = :period, kind = :kind, digest = :digest, text = :text,
    options = :options, times = :times, chosen = :chosen, answer = :answer, answered_at = :answered_at,
    delivered_at = :delivered_at
WHERE id = :id
RETURNING id;

-- name: list_snapshot
-- what a list looked like when last read
SELECT body FROM list_snapshot WHERE source = :source;

-- name: save_list_snapshot
-- stores what a list looks like now
INSERT INTO list_snapshot (source, body) VALUES (:source, :body)
ON CONFLICT (source) DO UPDATE SET body = excluded.body;

-- name: put_snapshot
-- keeps a text by its digest, if it is not kept already
INSERT INTO snapshot (digest, body) VALUES (:digest, :body) ON CONFLICT (digest) DO NOTHING;

-- name: snapshot
-- a text by its digest
SELECT body FROM snapshot WHERE digest = :digest;

-- name: host_todos
-- a session's own todos as last reported
SELECT body FROM host_todos WHERE session = :session;

-- name: save_host_todos
-- stores a session's own todos
INSERT INTO host_todos (session, body) VALUES (:session, :body)
ON CONFLICT (session) DO UPDATE SET body = excluded.body;

-- name: fact
-- one fact
SELECT value FROM fact WHERE subject = :subject AND name = :name;

-- name: save_fact
-- stores one fact
INSERT INTO fact (subject, name, value) VALUES (:subject, :name, :value)
ON CONFLICT (subject, name) DO UPDATE SET value = excluded.value;

-- name: keeper
-- a session's keeper
SELECT * FROM keeper WHERE session = :session;

-- name: save_keeper
-- stores a session's keeper unless a newer one is stored; tells its generation if it is stored now
INSERT INTO keeper (session, pid, started, generation, at, woke_at)
VALUES (:session, :pid, :started, :generation, :at, :woke_at)
ON CONFLICT (session) DO UPDATE SET
    pid = excluded.pid, started = excluded.started, generation = excluded.generation, at = excluded.at,
    woke_at = excluded.woke_at
WHERE excluded.generation >= keeper.generation
RETURNING generation;

-- name: reservation
-- the last reservation of one item
SELECT * FROM reservation WHERE place = :place AND item = :item;

-- name: save_reservation
-- stores an item's reservation, whole; triggers see to it that a token rises by one
INSERT INTO reservation (place, item, project, session, copy, root, title, claimed_at, expires_at, lease, token,
    first_seen, granted_at, released_at, terminal, footprint, taken_from, nonce)
VALUES (:place, :item, :project, :session, :copy, :root, :title, :claimed_at, :expires_at, :lease, :token,
    :first_seen, :granted_at, :released_at, :terminal, :footprint, :taken_from, :nonce)
ON CONFLICT (place, item) DO UPDATE SET
    project = excluded.project, session = excluded.session, copy = excluded.copy, root = excluded.root,
    title = excluded.title, claimed_at = excluded.claimed_at, expires_at = excluded.expires_at,
    lease = excluded.lease, token = excluded.token, first_seen = excluded.first_seen,
    granted_at = excluded.granted_at, released_at = excluded.released_at, terminal = excluded.terminal,
    footprint = excluded.footprint, taken_from = excluded.taken_from, nonce = excluded.nonce;

-- name: reservations
-- every reservation, if wanted the released ones too
SELECT * FROM reservation WHERE released_at IS NULL OR :released ORDER BY granted_at, place, item;

-- name: reservations_held_in
-- what is held in a project
SELECT * FROM reservation WHERE released_at IS NULL AND project = :project ORDER BY granted_at, place, item;

-- name: reservations_finished_in
-- what was finished in a project at or after an instant
SELECT * FROM reservation WHERE terminal AND released_at >= :since AND project = :project
ORDER BY granted_at, place, item;

-- name: reservations_of_copy
-- what sessions of a copy hold
SELECT * FROM reservation WHERE released_at IS NULL AND copy = :copy ORDER BY granted_at, place, item;

-- name: reservations_of_session
-- what a session holds
SELECT * FROM reservation WHERE released_at IS NULL AND session = :session ORDER BY granted_at, place, item;

-- name: add_ledger_item
-- a new item of the ledger; tells its number
INSERT INTO ledger_item (project, title, state, was, changed_at, priority, needs, waits_on, why, verify, verified_at,
    failure, assigned, created_at, created_by, done_by)
VALUES (:project, :title, :state, :was, :changed_at, :priority, :needs, :waits_on, :why, :verify, :verified_at,
    :failure, :assigned, :created_at, :created_by, :done_by)
RETURNING number;

-- name: save_ledger_item
-- stores an item of the ledger, whole; tells its number if there was one
UPDATE ledger_item SET project = :project, title = :title, state = :state, was = :was, changed_at = :changed_at,
    priority = :priority, needs = :needs, waits_on = :waits_on, why = :why, verify = :verify,
    verified_at = :verified_at, failure = :failure, assigned = :assigned, created_at = :created_at,
    created_by = :created_by, done_by = :done_by
WHERE number = :number
RETURNING number;

-- name: ledger_item
-- one item of the ledger
SELECT * FROM ledger_item WHERE number = :number;

-- name: ledger_items
-- the ledger of a project
SELECT * FROM ledger_item WHERE project = :project ORDER BY number;

-- name: ledger_items_of_all
-- the whole ledger
SELECT * FROM ledger_item ORDER BY number;

-- name: ledger_items_assigned
-- the items of the ledger that a session has begun
SELECT * FROM ledger_item WHERE assigned = :session AND assigned <> '' ORDER BY number;

-- name: ready_items
-- open items of a project's ledger that need nothing unfinished: by priority, then age (core.ledger says the same)
SELECT * FROM ledger_item
WHERE project = :project AND state = 'open' AND NOT EXISTS (
    SELECT 1 FROM json_each(ledger_item.needs) AS need JOIN ledger_item AS first ON first.number = need.value
    WHERE first.state NOT IN ('done', 'dropped'))
ORDER BY priority, created_at, number LIMIT :limit;

-- name: trackers
-- the trackers of a project
SELECT * FROM tracker WHERE project = :project ORDER BY name;

-- name: trackers_of_all
-- all trackers
SELECT * FROM tracker ORDER BY project, name;

-- name: save_tracker
-- stores a tracker, whole
INSERT INTO tracker (project, name, kind, command, root, read_at, failed_at, why)
VALUES (:project, :name, :kind, :command, :root, :read_at, :failed_at, :why)
ON CONFLICT (project, name) DO UPDATE SET
    kind = excluded.kind, command = excluded.command, root = excluded.root, read_at = excluded.read_at,
    failed_at = excluded.failed_at, why = excluded.why;

-- name: remove_tracker
-- takes a tracker away; tells its name if there was one
DELETE FROM tracker WHERE project = :project AND name = :name RETURNING name;

-- name: forget_tracked
-- takes away what a tracker said
DELETE FROM tracked_item WHERE project = :project AND tracker = :tracker;

-- name: add_tracked
-- one item that a tracker told of
INSERT INTO tracked_item (project, tracker, id, title, state, priority, blocked, created_at)
VALUES (:project, :tracker, :id, :title, :state, :priority, :blocked, :created_at)
ON CONFLICT (project, tracker, id) DO NOTHING;

-- name: tracked_items
-- what the trackers of a project said: by priority, then age
SELECT * FROM tracked_item WHERE project = :project ORDER BY priority, created_at, tracker, id;

-- name: save_conversation
-- stores a conversation, whole
INSERT INTO conversation (id, cwd, created_at, updated_at, model, mode, title, parent, ended_at)
VALUES (:id, :cwd, :created_at, :updated_at, :model, :mode, :title, :parent, :ended_at)
ON CONFLICT (id) DO UPDATE SET
    cwd = excluded.cwd, updated_at = excluded.updated_at, model = excluded.model, mode = excluded.mode,
    title = excluded.title, ended_at = excluded.ended_at;

-- name: conversation
-- one conversation
SELECT * FROM conversation WHERE id = :id;

-- name: conversations
-- the conversations in a directory, or all for an empty one: the latest first
SELECT * FROM conversation WHERE :cwd = '' OR cwd = :cwd ORDER BY updated_at DESC, id LIMIT :limit;

-- name: add_transcript_line
-- the next line of a transcript; tells its number
INSERT INTO transcript_line (session, number, at, kind, entry, turn, chain, attempt, body)
SELECT :session, coalesce(max(number), 0) + 1, :at, :kind, :entry, :turn, :chain, :attempt, :body
FROM transcript_line WHERE session = :session
RETURNING number;

-- name: transcript
-- the lines of a transcript after a number
SELECT * FROM transcript_line WHERE session = :session AND number > :after ORDER BY number;

-- name: forget_transcript
-- the lines of a transcript
DELETE FROM transcript_line WHERE session = :session;

-- name: forget_conversation
-- a conversation; tells its id if there was one
DELETE FROM conversation WHERE id = :session RETURNING id;
