-- The schema of the ledger at revision 0028, as pg_dump writes it: from there every ledger is migrated.
CREATE SCHEMA falcon;
CREATE TABLE falcon.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE falcon.audit (
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    recorded timestamp with time zone NOT NULL,
    principal text NOT NULL,
    os_user text NOT NULL,
    way text NOT NULL,
    operation text NOT NULL,
    entities jsonb NOT NULL,
    instances integer,
    first timestamp with time zone,
    last timestamp with time zone,
    reason text NOT NULL,
    result text NOT NULL,
    message text NOT NULL
);
COMMENT ON COLUMN falcon.audit.at IS 'on the falcon clock';
COMMENT ON COLUMN falcon.audit.recorded IS 'in real time';
COMMENT ON COLUMN falcon.audit.principal IS 'who asked';
COMMENT ON COLUMN falcon.audit.os_user IS 'the user of the process that did it';
COMMENT ON COLUMN falcon.audit.way IS 'cli, api or job';
COMMENT ON COLUMN falcon.audit.entities IS 'kind and name of each that it was about';
COMMENT ON COLUMN falcon.audit.instances IS 'how many it was about; null: it was about entities';
COMMENT ON COLUMN falcon.audit.first IS 'of the instances';
COMMENT ON COLUMN falcon.audit.last IS 'of the instances';
COMMENT ON COLUMN falcon.audit.reason IS 'in the words of who asked';
COMMENT ON COLUMN falcon.audit.result IS 'done, unchanged, denied or failed';
COMMENT ON COLUMN falcon.audit.message IS 'why it was denied or failed';
CREATE SEQUENCE falcon.audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE falcon.audit_id_seq OWNED BY falcon.audit.id;
CREATE TABLE falcon.clock (
    "only" boolean NOT NULL,
    tag text NOT NULL
);
COMMENT ON COLUMN falcon.clock."only" IS 'true: there is one row';
COMMENT ON COLUMN falcon.clock.tag IS 'the clock and its start; empty: the real one';
CREATE TABLE falcon.collected (
    cluster text NOT NULL,
    feed text NOT NULL,
    looked_at timestamp with time zone
);
COMMENT ON COLUMN falcon.collected.looked_at IS 'the last complete look at the feed, on the falcon clock';
CREATE TABLE falcon.consumed (
    process text NOT NULL,
    cluster text NOT NULL,
    nominal timestamp with time zone NOT NULL,
    input text NOT NULL,
    feed text NOT NULL,
    instance timestamp with time zone NOT NULL,
    version text,
    read_event bigint NOT NULL,
    too_late text,
    stale boolean NOT NULL,
    input_cluster text NOT NULL
);
COMMENT ON COLUMN falcon.consumed.version IS 'null: it was not there (an optional input)';
COMMENT ON COLUMN falcon.consumed.read_event IS 'of Dagster''s event after which it was read; 0: unknown';
COMMENT ON COLUMN falcon.consumed.too_late IS 'a later version that was said to have come too late';
COMMENT ON COLUMN falcon.consumed.stale IS 'whether there is another version now, not said to be too late';
COMMENT ON COLUMN falcon.consumed.input_cluster IS 'where it was read: replications read another cluster';
CREATE TABLE falcon.data_versions (
    cluster text NOT NULL,
    feed text NOT NULL,
    instance timestamp with time zone NOT NULL,
    version text NOT NULL,
    id bigint NOT NULL,
    event_id bigint NOT NULL,
    status text NOT NULL,
    seen_at timestamp with time zone,
    ended_at timestamp with time zone,
    ended_by text,
    archived_to text,
    path text,
    bytes bigint,
    records bigint,
    files bigint,
    process text,
    nominal timestamp with time zone,
    run_id text,
    attempt integer,
    definition integer,
    late boolean NOT NULL,
    made_by text,
    environment text,
    restored_by text,
    plan text,
    places text,
    made_at timestamp with time zone
);
COMMENT ON COLUMN falcon.data_versions.id IS 'numbered as history mentions them';
COMMENT ON COLUMN falcon.data_versions.event_id IS 'of Dagster''s event that brought it last';
COMMENT ON COLUMN falcon.data_versions.status IS 'AVAILABLE, REPLACED, EVICTED or READ';
COMMENT ON COLUMN falcon.data_versions.seen_at IS 'since when it was there, on the falcon clock; null: it was only read';
COMMENT ON COLUMN falcon.data_versions.ended_at IS 'when it was replaced or evicted, on the falcon clock';
COMMENT ON COLUMN falcon.data_versions.ended_by IS 'the run that replaced or evicted it';
COMMENT ON COLUMN falcon.data_versions.archived_to IS 'EVICTED: where it was archived; null: it was deleted';
COMMENT ON COLUMN falcon.data_versions.process IS 'which made it; null: it landed from outside';
COMMENT ON COLUMN falcon.data_versions.nominal IS 'the instance of the process';
COMMENT ON COLUMN falcon.data_versions.run_id IS 'the run that made it last';
COMMENT ON COLUMN falcon.data_versions.attempt IS 'of the instance of the process';
COMMENT ON COLUMN falcon.data_versions.definition IS 'the version that it was made with; null: not recorded';
COMMENT ON COLUMN falcon.data_versions.late IS 'whether a late rerun made it';
COMMENT ON COLUMN falcon.data_versions.made_by IS 'the user of the operating system whose run made it; null: not recorded';
COMMENT ON COLUMN falcon.data_versions.environment IS 'JSON: versions of Python and packages that it was made with';
COMMENT ON COLUMN falcon.data_versions.restored_by IS 'AVAILABLE: who restored it; null: it was made or landed';
COMMENT ON COLUMN falcon.data_versions.plan IS 'hash of its columns and what they were made from; null: not recorded';
COMMENT ON COLUMN falcon.data_versions.places IS 'JSON: from what of no feed it was made; null: nothing, or nobody knows';
COMMENT ON COLUMN falcon.data_versions.made_at IS 'when that run did, on the falcon clock; null: not recorded';
CREATE TABLE falcon.definition_trees (
    root text NOT NULL,
    fingerprint text NOT NULL,
    workflows json NOT NULL,
    entities json NOT NULL
);
COMMENT ON COLUMN falcon.definition_trees.root IS 'the folder of the definitions';
COMMENT ON COLUMN falcon.definition_trees.fingerprint IS 'of definitions and workflow files, without secrets';
COMMENT ON COLUMN falcon.definition_trees.workflows IS 'the workflow files, relative to the folder';
COMMENT ON COLUMN falcon.definition_trees.entities IS 'kind and name of each entity';
CREATE TABLE falcon.definition_versions (
    kind text NOT NULL,
    name text NOT NULL,
    version integer NOT NULL,
    text text,
    text_hash text,
    workflow_hash text,
    since timestamp with time zone NOT NULL,
    operation text NOT NULL,
    actor text NOT NULL,
    reason text NOT NULL
);
COMMENT ON COLUMN falcon.definition_versions.version IS 'from 1';
COMMENT ON COLUMN falcon.definition_versions.text IS 'as it is stored, with stars for secrets; null: the entity was deleted';
COMMENT ON COLUMN falcon.definition_versions.text_hash IS 'SHA-256 of the text';
COMMENT ON COLUMN falcon.definition_versions.workflow_hash IS 'SHA-256 of the files of its workflows; null: it has none';
COMMENT ON COLUMN falcon.definition_versions.since IS 'on the falcon clock';
COMMENT ON COLUMN falcon.definition_versions.operation IS 'the command, or load';
COMMENT ON COLUMN falcon.definition_versions.actor IS 'the user of the operating system';
COMMENT ON COLUMN falcon.definition_versions.reason IS 'in the words of who gave the command';
CREATE TABLE falcon.entity_status (
    kind text NOT NULL,
    name text NOT NULL,
    status text NOT NULL,
    since timestamp with time zone NOT NULL,
    commanded boolean NOT NULL,
    scheduled_since timestamp with time zone
);
COMMENT ON COLUMN falcon.entity_status.status IS 'SUBMITTED, RUNNING or SUSPENDED';
COMMENT ON COLUMN falcon.entity_status.since IS 'on the falcon clock';
COMMENT ON COLUMN falcon.entity_status.commanded IS 'by a person; false: by schedule: in the definition';
COMMENT ON COLUMN falcon.entity_status.scheduled_since IS 'when it was scheduled first, on the falcon clock; null: never';
CREATE TABLE falcon.evictions (
    cluster text NOT NULL,
    feed text NOT NULL,
    instance timestamp with time zone NOT NULL,
    action text NOT NULL,
    reason text NOT NULL,
    locations json NOT NULL,
    flag text,
    archive_cluster text,
    archive_to text,
    files bigint NOT NULL,
    bytes bigint NOT NULL,
    run_id text NOT NULL,
    decided_at timestamp with time zone NOT NULL,
    done_at timestamp with time zone,
    archive_root text
);
COMMENT ON COLUMN falcon.evictions.action IS 'delete or archive';
COMMENT ON COLUMN falcon.evictions.locations IS 'kind, path and fixed prefix of all that goes, data first';
COMMENT ON COLUMN falcon.evictions.flag IS 'name of the availability flag';
COMMENT ON COLUMN falcon.evictions.archive_cluster IS 'archive: null = the same cluster';
COMMENT ON COLUMN falcon.evictions.archive_to IS 'archive: the path of the data';
COMMENT ON COLUMN falcon.evictions.files IS 'how many there were at the decision';
COMMENT ON COLUMN falcon.evictions.bytes IS 'how much it was at the decision';
COMMENT ON COLUMN falcon.evictions.run_id IS 'the run that decided it';
COMMENT ON COLUMN falcon.evictions.decided_at IS 'on the falcon clock';
COMMENT ON COLUMN falcon.evictions.done_at IS 'on the falcon clock; null: not all of it has gone';
COMMENT ON COLUMN falcon.evictions.archive_root IS 'archive: URL of the root of the path; null = the cluster''s own';
CREATE TABLE falcon.feed_instances (
    cluster text NOT NULL,
    feed text NOT NULL,
    instance timestamp with time zone NOT NULL,
    state text NOT NULL,
    version text NOT NULL,
    bytes bigint,
    records bigint,
    files bigint,
    signature text,
    landed_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    previous_version text,
    changes integer NOT NULL,
    run_id text,
    event_id bigint NOT NULL,
    version_event bigint NOT NULL,
    late boolean NOT NULL,
    evicted_at timestamp with time zone,
    evicted_by text,
    evicted_bytes bigint,
    looked_before timestamp with time zone
);
COMMENT ON COLUMN falcon.feed_instances.state IS 'AVAILABLE or EVICTED';
COMMENT ON COLUMN falcon.feed_instances.version IS 'empty: none was seen before it was evicted';
COMMENT ON COLUMN falcon.feed_instances.signature IS 'of the listing, where it landed from outside';
COMMENT ON COLUMN falcon.feed_instances.landed_at IS 'when the first version was seen, on the falcon clock';
COMMENT ON COLUMN falcon.feed_instances.seen_at IS 'when the present version was seen, on the falcon clock';
COMMENT ON COLUMN falcon.feed_instances.previous_version IS 'the version before the present one';
COMMENT ON COLUMN falcon.feed_instances.changes IS 'how often the version changed after the first one';
COMMENT ON COLUMN falcon.feed_instances.run_id IS 'the run that published it; null: it landed from outside';
COMMENT ON COLUMN falcon.feed_instances.event_id IS 'of Dagster''s latest event about it';
COMMENT ON COLUMN falcon.feed_instances.version_event IS 'of Dagster''s event that brought the present version';
COMMENT ON COLUMN falcon.feed_instances.late IS 'whether a late rerun published the present version';
COMMENT ON COLUMN falcon.feed_instances.evicted_at IS 'EVICTED: when, on the falcon clock';
COMMENT ON COLUMN falcon.feed_instances.evicted_by IS 'EVICTED: the run that did it';
COMMENT ON COLUMN falcon.feed_instances.evicted_bytes IS 'EVICTED: how much it was, statistics and metadata included';
COMMENT ON COLUMN falcon.feed_instances.looked_before IS 'the look before seen_at, where it landed: it came between the two';
CREATE TABLE falcon.file_contents (
    hash text NOT NULL,
    number integer NOT NULL,
    data bytea NOT NULL
);
COMMENT ON COLUMN falcon.file_contents.hash IS 'SHA-256 of the whole content';
COMMENT ON COLUMN falcon.file_contents.number IS 'of the part, from 0';
CREATE TABLE falcon.fold (
    "only" boolean NOT NULL,
    event_id bigint NOT NULL
);
COMMENT ON COLUMN falcon.fold."only" IS 'true: there is one row';
COMMENT ON COLUMN falcon.fold.event_id IS 'the latest event of Dagster''s that is folded in';
CREATE TABLE falcon.incomplete (
    cluster text NOT NULL,
    feed text NOT NULL,
    instance timestamp with time zone NOT NULL
);
CREATE TABLE falcon.kept_versions (
    cluster text NOT NULL,
    feed text NOT NULL,
    instance timestamp with time zone NOT NULL,
    version text NOT NULL,
    path text NOT NULL,
    replaced_at timestamp with time zone NOT NULL
);
COMMENT ON COLUMN falcon.kept_versions.path IS 'where it lies';
COMMENT ON COLUMN falcon.kept_versions.replaced_at IS 'when it was, on the falcon clock';
CREATE TABLE falcon.notification_events (
    id bigint NOT NULL,
    key text NOT NULL,
    event text NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    cluster text NOT NULL,
    instance timestamp with time zone NOT NULL,
    at timestamp with time zone NOT NULL,
    source text NOT NULL,
    reason text NOT NULL,
    attempt integer NOT NULL,
    failures integer NOT NULL,
    event_id bigint,
    run jsonb
);
COMMENT ON COLUMN falcon.notification_events.key IS 'the same for the same event';
COMMENT ON COLUMN falcon.notification_events.event IS 'FAILED, TIMED_OUT, LATE, EVICTED or SUCCEEDED';
COMMENT ON COLUMN falcon.notification_events.kind IS 'as in notified';
COMMENT ON COLUMN falcon.notification_events.at IS 'on the falcon clock';
COMMENT ON COLUMN falcon.notification_events.source IS 'tells it from others of the instance';
COMMENT ON COLUMN falcon.notification_events.event_id IS 'of Dagster''s event; null: there is none';
COMMENT ON COLUMN falcon.notification_events.run IS 'the run of the instance, or that removed it; null: not recorded';
ALTER TABLE falcon.notification_events ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME falcon.notification_events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE falcon.notification_receivers (
    receiver text NOT NULL,
    failures integer NOT NULL,
    problem text NOT NULL,
    sent_at timestamp with time zone,
    retry_at timestamp with time zone
);
COMMENT ON COLUMN falcon.notification_receivers.failures IS 'messages in a row that did not come through';
COMMENT ON COLUMN falcon.notification_receivers.problem IS 'why the last one did not; empty: it did';
COMMENT ON COLUMN falcon.notification_receivers.sent_at IS 'when a message came through last, in real time';
COMMENT ON COLUMN falcon.notification_receivers.retry_at IS 'when the next is tried, in real time; null: nothing failed';
CREATE TABLE falcon.notifications (
    id bigint NOT NULL,
    receiver text NOT NULL,
    key text NOT NULL,
    event text NOT NULL,
    kind text NOT NULL,
    entity text NOT NULL,
    cluster text NOT NULL,
    instance timestamp with time zone NOT NULL,
    at timestamp with time zone NOT NULL,
    reason text NOT NULL,
    state text NOT NULL,
    message text,
    noted_at timestamp with time zone NOT NULL,
    settled_at timestamp with time zone,
    run jsonb
);
COMMENT ON COLUMN falcon.notifications.receiver IS 'name of the environment variable with the URL';
COMMENT ON COLUMN falcon.notifications.key IS 'of the event';
COMMENT ON COLUMN falcon.notifications.kind IS 'feed or process';
COMMENT ON COLUMN falcon.notifications.at IS 'on the falcon clock';
COMMENT ON COLUMN falcon.notifications.state IS 'PENDING, SENDING, SENT or GIVEN_UP';
COMMENT ON COLUMN falcon.notifications.message IS 'the message that tells it; null: none yet';
COMMENT ON COLUMN falcon.notifications.noted_at IS 'in real time';
COMMENT ON COLUMN falcon.notifications.settled_at IS 'SENT, GIVEN_UP: when, in real time';
COMMENT ON COLUMN falcon.notifications.run IS 'the run of the instance, or that removed it; null: not recorded';
ALTER TABLE falcon.notifications ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME falcon.notifications_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE falcon.notified (
    kind text NOT NULL,
    name text NOT NULL,
    cluster text NOT NULL,
    events jsonb NOT NULL,
    since_event bigint NOT NULL,
    since timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL
);
COMMENT ON COLUMN falcon.notified.kind IS 'process: of processes and replications; feed: of feeds';
COMMENT ON COLUMN falcon.notified.events IS 'what somebody is to be told of its instances';
COMMENT ON COLUMN falcon.notified.since_event IS 'Dagster''s events up to this one are told to nobody';
COMMENT ON COLUMN falcon.notified.since IS 'breaches of SLAs before it are told to nobody; falcon clock';
COMMENT ON COLUMN falcon.notified.seen_at IS 'when the sensor saw that it is declared, in real time';
CREATE TABLE falcon.passes (
    cluster text NOT NULL,
    feed text NOT NULL,
    template text NOT NULL,
    began timestamp with time zone,
    folder text NOT NULL,
    lists_all boolean NOT NULL,
    before timestamp with time zone,
    all_before timestamp with time zone
);
COMMENT ON COLUMN falcon.passes.template IS 'of the paths: another one is looked through anew';
COMMENT ON COLUMN falcon.passes.began IS 'when the present pass began, in real time; null: none is under way';
COMMENT ON COLUMN falcon.passes.folder IS 'the last one that the present pass looked through';
COMMENT ON COLUMN falcon.passes.lists_all IS 'whether the present pass lists unchanged ones too';
COMMENT ON COLUMN falcon.passes.before IS 'when the last complete pass began, in real time';
COMMENT ON COLUMN falcon.passes.all_before IS 'when the last complete pass that listed all began, in real time';
CREATE TABLE falcon.process_instances (
    process text NOT NULL,
    cluster text NOT NULL,
    nominal timestamp with time zone NOT NULL,
    state text NOT NULL,
    reason text NOT NULL,
    attempt integer NOT NULL,
    failures integer NOT NULL,
    queued_run text,
    run_id text,
    started timestamp with time zone,
    ended timestamp with time zone,
    event_id bigint NOT NULL,
    started_event bigint,
    reason_data json,
    definition integer,
    first_started timestamp with time zone,
    first_succeeded timestamp with time zone
);
COMMENT ON COLUMN falcon.process_instances.attempt IS 'how many runs it was given to';
COMMENT ON COLUMN falcon.process_instances.failures IS 'FAILED or TIMED_OUT in a row';
COMMENT ON COLUMN falcon.process_instances.queued_run IS 'the run that carries it and has not started it yet';
COMMENT ON COLUMN falcon.process_instances.run_id IS 'the run that started it last';
COMMENT ON COLUMN falcon.process_instances.event_id IS 'of Dagster''s latest event about it';
COMMENT ON COLUMN falcon.process_instances.started_event IS 'of Dagster''s event by which it started last';
COMMENT ON COLUMN falcon.process_instances.reason_data IS 'the reason for programs, where a rule says it';
COMMENT ON COLUMN falcon.process_instances.definition IS 'the version that it ran with last; null: not recorded';
COMMENT ON COLUMN falcon.process_instances.first_started IS 'when it started first, on the falcon clock';
COMMENT ON COLUMN falcon.process_instances.first_succeeded IS 'when it succeeded first, on the falcon clock';
CREATE TABLE falcon.progress (
    process text NOT NULL,
    cluster text NOT NULL,
    timeline text NOT NULL,
    first_open timestamp with time zone NOT NULL
);
COMMENT ON COLUMN falcon.progress.timeline IS 'of the process: another one starts anew';
COMMENT ON COLUMN falcon.progress.first_open IS 'every instance before it is settled';
CREATE TABLE falcon.pushed (
    cluster text NOT NULL,
    feed text NOT NULL,
    partition text NOT NULL,
    event_id bigint NOT NULL
);
COMMENT ON COLUMN falcon.pushed.partition IS 'as it was pushed; empty: none was named';
COMMENT ON COLUMN falcon.pushed.event_id IS 'of Dagster''s latest event that pushed it';
CREATE TABLE falcon.reruns (
    process text NOT NULL,
    cluster text NOT NULL,
    nominal timestamp with time zone NOT NULL,
    kind text NOT NULL,
    cause json NOT NULL,
    attempt integer NOT NULL,
    failures integer NOT NULL,
    requested_at timestamp with time zone NOT NULL,
    late_workflow boolean NOT NULL,
    use_latest boolean NOT NULL,
    actor text NOT NULL,
    reason text NOT NULL
);
COMMENT ON COLUMN falcon.reruns.kind IS 'late: its input changed; rerun: a person asked for it';
COMMENT ON COLUMN falcon.reruns.cause IS 'late: the changes, as the record of the rerun shows them';
COMMENT ON COLUMN falcon.reruns.attempt IS 'of the instance when it was asked for';
COMMENT ON COLUMN falcon.reruns.failures IS 'of the instance when it was asked for';
COMMENT ON COLUMN falcon.reruns.requested_at IS 'on the falcon clock';
COMMENT ON COLUMN falcon.reruns.late_workflow IS 'rerun: with the workflow that late data has';
COMMENT ON COLUMN falcon.reruns.use_latest IS 'rerun: with the present definition';
COMMENT ON COLUMN falcon.reruns.actor IS 'rerun: who asked for it';
COMMENT ON COLUMN falcon.reruns.reason IS 'rerun: why';
CREATE TABLE falcon.sla_breaches (
    kind text NOT NULL,
    entity text NOT NULL,
    cluster text NOT NULL,
    level text NOT NULL,
    instance timestamp with time zone NOT NULL,
    deadline timestamp with time zone NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    state text NOT NULL,
    cleared_at timestamp with time zone,
    told text,
    notified text
);
COMMENT ON COLUMN falcon.sla_breaches.kind IS 'feed or process';
COMMENT ON COLUMN falcon.sla_breaches.level IS 'low, high, should_start_in or should_end_in';
COMMENT ON COLUMN falcon.sla_breaches.deadline IS 'when it was breached';
COMMENT ON COLUMN falcon.sla_breaches.recorded_at IS 'on the falcon clock';
COMMENT ON COLUMN falcon.sla_breaches.state IS 'OPEN, MET or WITHDRAWN';
COMMENT ON COLUMN falcon.sla_breaches.cleared_at IS 'on the falcon clock; null: it is open';
COMMENT ON COLUMN falcon.sla_breaches.told IS 'the state that Dagster''s check of the asset shows; null: nothing';
COMMENT ON COLUMN falcon.sla_breaches.notified IS 'the state that the receivers of notifications were told, if any; null: nothing';
CREATE TABLE falcon.sla_evaluations (
    cluster text NOT NULL,
    at timestamp with time zone NOT NULL,
    event_id bigint NOT NULL
);
COMMENT ON COLUMN falcon.sla_evaluations.at IS 'the last evaluation, on the falcon clock';
COMMENT ON COLUMN falcon.sla_evaluations.event_id IS 'how far the ledger was folded then';
CREATE TABLE falcon.sla_progress (
    kind text NOT NULL,
    entity text NOT NULL,
    cluster text NOT NULL,
    level text NOT NULL,
    judged timestamp with time zone NOT NULL
);
COMMENT ON COLUMN falcon.sla_progress.judged IS 'every instance before it is judged';
CREATE TABLE falcon.sla_totals (
    kind text NOT NULL,
    entity text NOT NULL,
    cluster text NOT NULL,
    level text NOT NULL,
    breaches bigint NOT NULL
);
COMMENT ON COLUMN falcon.sla_totals.kind IS 'feed or process';
CREATE TABLE falcon.totals (
    what text NOT NULL,
    entity text NOT NULL,
    cluster text NOT NULL,
    label text NOT NULL,
    number numeric NOT NULL
);
COMMENT ON COLUMN falcon.totals.what IS 'feed or process: instances; copied_bytes, evicted_bytes';
COMMENT ON COLUMN falcon.totals.entity IS 'a feed, a process or a replication';
COMMENT ON COLUMN falcon.totals.label IS 'the state; evicted_bytes: what was done; else empty';
CREATE TABLE falcon.version_columns (
    plan text NOT NULL,
    columns jsonb NOT NULL,
    rows_from jsonb
);
COMMENT ON COLUMN falcon.version_columns.plan IS 'hash of the columns';
COMMENT ON COLUMN falcon.version_columns.columns IS 'name, type, what each was made from, whether that is sure';
COMMENT ON COLUMN falcon.version_columns.rows_from IS 'what decides which rows there are; null: not recorded';
CREATE TABLE falcon.version_edges (
    output bigint NOT NULL,
    input bigint NOT NULL,
    process text NOT NULL,
    run_id text,
    definition integer,
    declared boolean NOT NULL
);
COMMENT ON COLUMN falcon.version_edges.output IS 'the version that was made';
COMMENT ON COLUMN falcon.version_edges.input IS 'a version it was made from';
COMMENT ON COLUMN falcon.version_edges.run_id IS 'the run that did so last';
COMMENT ON COLUMN falcon.version_edges.definition IS 'the version that it ran with; null: not recorded';
COMMENT ON COLUMN falcon.version_edges.declared IS 'whether it is an input of the definition';
CREATE TABLE falcon.version_lifecycle (
    cluster text NOT NULL,
    feed text NOT NULL,
    instance timestamp with time zone NOT NULL,
    version text NOT NULL,
    status text NOT NULL,
    at timestamp with time zone NOT NULL,
    actor text NOT NULL,
    reason text NOT NULL
);
COMMENT ON COLUMN falcon.version_lifecycle.status IS 'initial, test, validated or critical';
COMMENT ON COLUMN falcon.version_lifecycle.at IS 'when it was set, on the falcon clock';
COMMENT ON COLUMN falcon.version_lifecycle.actor IS 'who set it';
COMMENT ON COLUMN falcon.version_lifecycle.reason IS 'in the words of who set it';
CREATE TABLE falcon.workflow_files (
    process text NOT NULL,
    version integer NOT NULL,
    path text NOT NULL,
    hash text,
    problem text NOT NULL
);
COMMENT ON COLUMN falcon.workflow_files.version IS 'of its definition';
COMMENT ON COLUMN falcon.workflow_files.path IS 'relative to the folder of the definitions';
COMMENT ON COLUMN falcon.workflow_files.hash IS 'SHA-256 of the content; null: it was not kept';
COMMENT ON COLUMN falcon.workflow_files.problem IS 'why it was not kept';
ALTER TABLE ONLY falcon.audit ALTER COLUMN id SET DEFAULT nextval('falcon.audit_id_seq'::regclass);
ALTER TABLE ONLY falcon.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY falcon.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (id);
ALTER TABLE ONLY falcon.clock
    ADD CONSTRAINT clock_pkey PRIMARY KEY ("only");
ALTER TABLE ONLY falcon.collected
    ADD CONSTRAINT collected_pkey PRIMARY KEY (cluster, feed);
ALTER TABLE ONLY falcon.consumed
    ADD CONSTRAINT consumed_pkey PRIMARY KEY (process, cluster, nominal, input, instance);
ALTER TABLE ONLY falcon.data_versions
    ADD CONSTRAINT data_versions_pkey PRIMARY KEY (cluster, feed, instance, version);
ALTER TABLE ONLY falcon.definition_trees
    ADD CONSTRAINT definition_trees_pkey PRIMARY KEY (root);
ALTER TABLE ONLY falcon.definition_versions
    ADD CONSTRAINT definition_versions_pkey PRIMARY KEY (kind, name, version);
ALTER TABLE ONLY falcon.entity_status
    ADD CONSTRAINT entity_status_pkey PRIMARY KEY (kind, name);
ALTER TABLE ONLY falcon.evictions
    ADD CONSTRAINT evictions_pkey PRIMARY KEY (cluster, feed, instance);
ALTER TABLE ONLY falcon.feed_instances
    ADD CONSTRAINT feed_instances_pkey PRIMARY KEY (cluster, feed, instance);
ALTER TABLE ONLY falcon.file_contents
    ADD CONSTRAINT file_contents_pkey PRIMARY KEY (hash, number);
ALTER TABLE ONLY falcon.fold
    ADD CONSTRAINT fold_pkey PRIMARY KEY ("only");
ALTER TABLE ONLY falcon.incomplete
    ADD CONSTRAINT incomplete_pkey PRIMARY KEY (cluster, feed, instance);
ALTER TABLE ONLY falcon.kept_versions
    ADD CONSTRAINT kept_versions_pkey PRIMARY KEY (cluster, feed, instance, version);
ALTER TABLE ONLY falcon.notification_events
    ADD CONSTRAINT notification_events_key_key UNIQUE (key);
ALTER TABLE ONLY falcon.notification_events
    ADD CONSTRAINT notification_events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY falcon.notification_receivers
    ADD CONSTRAINT notification_receivers_pkey PRIMARY KEY (receiver);
ALTER TABLE ONLY falcon.notifications
    ADD CONSTRAINT notifications_pkey PRIMARY KEY (id);
ALTER TABLE ONLY falcon.notifications
    ADD CONSTRAINT notifications_receiver_key_key UNIQUE (receiver, key);
ALTER TABLE ONLY falcon.notified
    ADD CONSTRAINT notified_pkey PRIMARY KEY (kind, name, cluster);
ALTER TABLE ONLY falcon.passes
    ADD CONSTRAINT passes_pkey PRIMARY KEY (cluster, feed);
ALTER TABLE ONLY falcon.process_instances
    ADD CONSTRAINT process_instances_pkey PRIMARY KEY (process, cluster, nominal);
ALTER TABLE ONLY falcon.progress
    ADD CONSTRAINT progress_pkey PRIMARY KEY (process, cluster, timeline);
ALTER TABLE ONLY falcon.pushed
    ADD CONSTRAINT pushed_pkey PRIMARY KEY (cluster, feed, partition);
ALTER TABLE ONLY falcon.reruns
    ADD CONSTRAINT reruns_pkey PRIMARY KEY (process, cluster, nominal);
ALTER TABLE ONLY falcon.sla_breaches
    ADD CONSTRAINT sla_breaches_pkey PRIMARY KEY (kind, entity, cluster, level, instance);
ALTER TABLE ONLY falcon.sla_evaluations
    ADD CONSTRAINT sla_evaluations_pkey PRIMARY KEY (cluster);
ALTER TABLE ONLY falcon.sla_progress
    ADD CONSTRAINT sla_progress_pkey PRIMARY KEY (kind, entity, cluster, level);
ALTER TABLE ONLY falcon.sla_totals
    ADD CONSTRAINT sla_totals_pkey PRIMARY KEY (kind, entity, cluster, level);
ALTER TABLE ONLY falcon.totals
    ADD CONSTRAINT totals_pkey PRIMARY KEY (what, entity, cluster, label);
ALTER TABLE ONLY falcon.version_columns
    ADD CONSTRAINT version_columns_pkey PRIMARY KEY (plan);
ALTER TABLE ONLY falcon.version_edges
    ADD CONSTRAINT version_edges_pkey PRIMARY KEY (output, input);
ALTER TABLE ONLY falcon.version_lifecycle
    ADD CONSTRAINT version_lifecycle_pkey PRIMARY KEY (cluster, feed, instance, version);
ALTER TABLE ONLY falcon.workflow_files
    ADD CONSTRAINT workflow_files_pkey PRIMARY KEY (process, version, path);
CREATE INDEX ix_consumed_feed ON falcon.consumed USING btree (input_cluster, feed, instance);
CREATE INDEX ix_consumed_stale ON falcon.consumed USING btree (cluster, process, input) WHERE stale;
CREATE INDEX ix_data_versions_feed ON falcon.data_versions USING btree (feed, instance);
CREATE UNIQUE INDEX ix_data_versions_id ON falcon.data_versions USING btree (id);
CREATE INDEX ix_data_versions_run ON falcon.data_versions USING btree (run_id);
CREATE INDEX ix_evictions_open ON falcon.evictions USING btree (cluster, feed) WHERE (done_at IS NULL);
CREATE INDEX ix_feed_instances_event ON falcon.feed_instances USING btree (event_id);
CREATE INDEX ix_feed_instances_state ON falcon.feed_instances USING btree (cluster, feed, state, instance);
CREATE INDEX ix_notifications_message ON falcon.notifications USING btree (message);
CREATE INDEX ix_notifications_open ON falcon.notifications USING btree (receiver, id) WHERE (state = ANY (ARRAY['PENDING'::text, 'SENDING'::text]));
CREATE INDEX ix_notifications_settled ON falcon.notifications USING btree (settled_at);
CREATE INDEX ix_process_instances_event ON falcon.process_instances USING btree (event_id);
CREATE INDEX ix_process_instances_open ON falcon.process_instances USING btree (cluster, process) WHERE ((queued_run IS NOT NULL) OR (state <> ALL (ARRAY['SUCCEEDED'::text, 'SKIPPED'::text, 'KILLED'::text])));
CREATE INDEX ix_process_instances_queued_run ON falcon.process_instances USING btree (queued_run);
CREATE INDEX ix_process_instances_run ON falcon.process_instances USING btree (run_id);
CREATE INDEX ix_process_instances_state ON falcon.process_instances USING btree (process, cluster, state, nominal);
CREATE INDEX ix_sla_breaches_open ON falcon.sla_breaches USING btree (cluster, kind, entity, instance) WHERE (state = 'OPEN'::text);
CREATE INDEX ix_sla_breaches_unnotified ON falcon.sla_breaches USING btree (cluster) WHERE (notified IS DISTINCT FROM state);
CREATE INDEX ix_sla_breaches_untold ON falcon.sla_breaches USING btree (cluster) WHERE (told IS DISTINCT FROM state);
CREATE INDEX ix_version_edges_input ON falcon.version_edges USING btree (input, output);
