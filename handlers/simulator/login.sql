-- A login for the simulator: it plays the network of payments, so it may bring them L1 to L4, and
-- no other response; where it is to decide about risks as well (behaviour of risk-approval), say
-- -v approvals=yes. For psql, as who migrates, after `commandbus migrate --set payments`; safe to
-- repeat:
--
--   psql "$COMMANDBUS_DATABASE_URL" -v login=simulator -v password=… \
--       -f handlers/simulator/login.sql
\set ON_ERROR_STOP on
SELECT format('CREATE ROLE %I LOGIN', :'login')
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'login') \gexec
ALTER ROLE :"login" PASSWORD :'password';
GRANT commandbus_sender TO :"login";
SELECT count(commandbus.allow_response(process_type, level, :'login')) AS allowed
FROM unnest('{PaymentStep,PaymentWorkflow,PaymentManager}'::text[]) process_type,
     unnest('{L1,L2,L3,L4}'::text[]) level;
\if :{?approvals}
SELECT count(commandbus.allow_response(process_type, 'riskApproval', :'login')) AS allowed
FROM unnest('{PaymentStep,PaymentWorkflow,PaymentManager}'::text[]) process_type;
\endif
-- Has a person answered, is the payment over? And what waits for a person: sql/queries.
GRANT SELECT ON commandbus.process, commandbus.process_inbox, commandbus.process_history
    TO :"login";
GRANT USAGE ON SCHEMA payments TO :"login";
GRANT SELECT, INSERT ON payments.pending_approval, payments.pending_network_response TO :"login";
