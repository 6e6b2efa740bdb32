-- Queues exist because a domain was registered, never by accident of a typo in send.

-- One queue of PGMQ, with what churn asks for.
CREATE FUNCTION commandbus.create_queue(queue_name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    queue_table   text := format('pgmq.%I', 'q_' || queue_name);
    archive_table text := format('pgmq.%I', 'a_' || queue_name);
    queue_seq     text := format('pgmq.%I', 'q_' || queue_name || '_msg_id_seq');
BEGIN
    PERFORM pgmq.create(queue_name);

    -- A queue lives on dead rows: claims slow down to half after some 300,000 deletions without a
    -- vacuum. Vacuum by count, without pausing, and leave room in each page so that a new version
    -- of a claimed message finds a place near the old one.
    EXECUTE format('ALTER TABLE %s SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, '
                   'autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_insert_scale_factor = 0, '
                   'autovacuum_vacuum_insert_threshold = 50000, autovacuum_analyze_scale_factor = 0, '
                   'autovacuum_analyze_threshold = 50000, autovacuum_vacuum_cost_delay = 0)', queue_table);
    EXECUTE format('GRANT SELECT ON %s, %s, %s TO commandbus_operator', queue_table, archive_table, queue_seq);
    -- What pgmq.metrics reads. Payloads stay out of sight of monitoring.
    EXECUTE format('GRANT SELECT (msg_id, read_ct, enqueued_at, last_read_at, vt) ON %s, %s TO commandbus_monitor',
                   queue_table, archive_table);
    EXECUTE format('GRANT SELECT ON %s TO commandbus_monitor', queue_seq);
END
$$;

-- Makes <domain>__commands and <domain>__replies, and the named further reply queue if there is
-- one. Safe to repeat and to run from many workers at once.
CREATE FUNCTION commandbus.register_domain(domain text, reply_queue text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    problem text := commandbus.domain_name_problem(register_domain.domain);
    replies text;
BEGIN
    IF problem IS NOT NULL THEN
        PERFORM commandbus.refuse('INVALID_NAME', problem, 'Choose another name; nothing was created.');
    END IF;
    IF reply_queue IS NOT NULL
       AND (reply_queue !~ '^[a-z][a-z0-9_]*$' OR length(reply_queue) > 47 OR reply_queue LIKE '%\_\_commands') THEN
        PERFORM commandbus.refuse('INVALID_NAME', format('''%s'' is no name for a reply queue', left(reply_queue, 80)),
            'a-z first, then a-z, 0-9 and _, 47 characters at most, not ending in __commands.');
    END IF;

    IF NOT EXISTS (SELECT FROM commandbus.domain d WHERE d.domain = register_domain.domain) THEN
        PERFORM pg_advisory_xact_lock(hashtextextended('commandbus.register_domain', 0));
        IF NOT EXISTS (SELECT FROM commandbus.domain d WHERE d.domain = register_domain.domain) THEN
            PERFORM commandbus.create_queue(register_domain.domain || '__commands');
            INSERT INTO commandbus.domain (domain) VALUES (register_domain.domain);
        END IF;
    END IF;

    FOREACH replies IN ARRAY array_remove(ARRAY[register_domain.domain || '__replies', reply_queue], NULL) LOOP
        IF NOT EXISTS (SELECT FROM commandbus.reply_queue r WHERE r.queue_name = replies) THEN
            PERFORM pg_advisory_xact_lock(hashtextextended('commandbus.register_domain', 0));
            IF NOT EXISTS (SELECT FROM commandbus.reply_queue r WHERE r.queue_name = replies) THEN
                PERFORM commandbus.create_queue(replies);
                INSERT INTO commandbus.reply_queue (queue_name, domain) VALUES (replies, register_domain.domain);
            END IF;
        END IF;
    END LOOP;
END
$$;
