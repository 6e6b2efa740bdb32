-- Who may do what. Functions that act are definer functions of the owner; everything else is
-- closed, so that a role can do its job through them and nothing else.
REVOKE ALL ON SCHEMA commandbus FROM PUBLIC;
GRANT USAGE ON SCHEMA commandbus TO commandbus_sender, commandbus_worker, commandbus_operator,
    commandbus_monitor;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA commandbus FROM PUBLIC;

-- Also for functions of later files, in the transaction that creates them.
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
GRANT SELECT ON commandbus.schema_version
    TO commandbus_sender, commandbus_worker, commandbus_operator, commandbus_monitor;
GRANT EXECUTE ON FUNCTION commandbus.now()
    TO commandbus_sender, commandbus_worker, commandbus_operator, commandbus_monitor;

-- Senders send, and respond where allow_response lets them: who calls that is a member of the
-- owner.
GRANT EXECUTE ON FUNCTION commandbus.send, commandbus.send_many, commandbus.send_arrays,
    commandbus.create_batch, commandbus.create_batch_arrays, commandbus.start_process,
    commandbus.start_processes, commandbus.start_batch, commandbus.respond
    TO commandbus_sender;

-- Workers receive and settle and keep house; they are members of the senders too
-- (queries/schema.sql), for a process sends commands.
GRANT EXECUTE ON FUNCTION commandbus.register_domain, commandbus.receive, commandbus.hold_fence,
    commandbus.settle, commandbus.extend, commandbus.release_unknown, commandbus.sleep_announce,
    commandbus.sleep_end, commandbus.heartbeat, commandbus.retire, commandbus.tidy_fleet,
    commandbus.set_fleet_limit, commandbus.queue_samples, commandbus.close_batches,
    commandbus.restore_messages, commandbus.keep_messages, commandbus.restore_replies,
    commandbus.keep_replies, commandbus.purge
    TO commandbus_worker;
GRANT EXECUTE ON FUNCTION commandbus.register_process_type, commandbus.deliver_replies,
    commandbus.deliver_former_replies, commandbus.claim_processes, commandbus.next_process_wake,
    commandbus.extend_processes, commandbus.release_unknown_processes,
    commandbus.read_processes, commandbus.running_processes
    TO commandbus_worker;
GRANT EXECUTE ON FUNCTION commandbus.queue_metrics(), commandbus.lost_messages(),
    commandbus.hidden_messages() TO commandbus_monitor, commandbus_worker;
GRANT EXECUTE ON FUNCTION commandbus.fleet_domains(), commandbus.figure TO commandbus_monitor;
GRANT EXECUTE ON FUNCTION commandbus.domain_figures() TO commandbus_monitor, commandbus_worker;

-- Monitoring sees everything but payloads: data, result, headers, custom_data, audit details.
GRANT SELECT (command_id, correlation_id, batch_id, process_id, msg_id, lease_no, lease_until,
              created_at, updated_at, completed_at, tsq_at, status, attempts, max_attempts,
              timeout_seconds, domain, command_type, reply_to, lease_owner, error_type, error_code)
    ON commandbus.command_metadata TO commandbus_monitor;
GRANT SELECT (id, at, command_id, lease_no, attempt, domain, event_type, worker, operator, db_user)
    ON commandbus.audit TO commandbus_monitor;
GRANT SELECT (batch_id, domain, name, batch_type, status, reply_to, total, completed, failed,
              canceled, created_at, started_at, completed_at)
    ON commandbus.batch TO commandbus_monitor;
GRANT SELECT (batch_id, domain, name, batch_type, status, reply_to, total, completed, failed,
              canceled, in_troubleshooting, in_progress, pending, created_at, started_at,
              completed_at)
    ON commandbus.batch_status TO commandbus_monitor;
GRANT SELECT ON commandbus.domain, commandbus.reply_queue, commandbus.fleet_place,
    commandbus.fleet_lease, commandbus.sleeper, commandbus.worker, commandbus.fleet
    TO commandbus_monitor;

-- Operators, members of monitoring too, see all and decide about what is stuck.
GRANT SELECT ON commandbus.command_metadata, commandbus.audit, commandbus.batch,
    commandbus.batch_status
    TO commandbus_operator;
GRANT EXECUTE ON FUNCTION commandbus.tsq_retry, commandbus.tsq_cancel, commandbus.tsq_complete,
    commandbus.register_domain, commandbus.restore_messages, commandbus.restore_replies,
    commandbus.close_batches, commandbus.purge
    TO commandbus_operator;
GRANT EXECUTE ON FUNCTION commandbus.start_process, commandbus.start_processes,
    commandbus.start_batch, commandbus.respond, commandbus.read_processes,
    commandbus.running_processes
    TO commandbus_operator;

-- Processes. Workers settle what they claimed.
GRANT EXECUTE ON FUNCTION commandbus.settle_processes, commandbus.settle_process_arrays
    TO commandbus_worker;
GRANT EXECUTE ON FUNCTION commandbus.process_retry, commandbus.process_cancel,
    commandbus.process_complete
    TO commandbus_operator;

-- Monitoring sees what they do, not what they are about: no state, results, payloads, messages.
GRANT SELECT (process_id, batch_id, lease_no, lease_until, settle_no, wake_at, next_retry_at,
              next_wait_timeout_at, deadline_at, created_at, updated_at, completed_at, tsq_at,
              content_bytes, unsettled, inbox_seq, version, status, phase, execution_model,
              deadline_spent, awaits_reply, domain, process_type, current_step, current_wait,
              lease_owner, reply_queue, error_code)
    ON commandbus.process TO commandbus_monitor;
GRANT SELECT (process_id, command_id, response_id, at, begun_at, finished_at, timeout_at, took_ms,
              ordinal, attempts, max_attempts, send_no, during, in_doubt, kind, status, name,
              domain, command_type, worker, error_code)
    ON commandbus.process_history TO commandbus_monitor;
GRANT SELECT (id, process_id, command_id, at, ended_at, took_ms, ordinal, attempts, max_attempts,
              send_no, kind, status, name, domain, command_type, worker, error_code)
    ON commandbus.process_attempt TO commandbus_monitor;
GRANT SELECT (process_id, seq, at, kind, response_id, name) ON commandbus.process_inbox
    TO commandbus_monitor;
GRANT SELECT (id, at, process_id, command_id, event, step_name, worker, operator, db_user)
    ON commandbus.process_event TO commandbus_monitor;
GRANT SELECT ON commandbus.process_type, commandbus.responder TO commandbus_monitor;
GRANT SELECT ON commandbus.process, commandbus.process_history, commandbus.process_attempt,
    commandbus.process_inbox, commandbus.process_event
    TO commandbus_operator;
GRANT SELECT (process_id, domain, process_type, at, step_name, event, entry_type, step_status,
              attempt_number, command_id, command_type, sent_at, reply_outcome, received_at,
              operator, ordinal, worker, max_attempts, db_user)
    ON commandbus.process_audit TO commandbus_monitor;
GRANT SELECT ON commandbus.process_audit, commandbus.process_state_document TO commandbus_operator;
GRANT EXECUTE ON FUNCTION commandbus.process_figures() TO commandbus_monitor, commandbus_worker;
GRANT EXECUTE ON FUNCTION commandbus.process_problems() TO commandbus_monitor;

-- What the views of processes call, they call as who looks.
GRANT EXECUTE ON FUNCTION commandbus.step_status, commandbus.reply_outcome TO commandbus_monitor;
GRANT EXECUTE ON FUNCTION commandbus.instant, commandbus.redacted, commandbus.changes
    TO commandbus_operator;
