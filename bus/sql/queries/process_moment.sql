-- $1 interval. So much after now, by the clock of process timers.
SELECT commandbus.now() + $1::interval AS moment
