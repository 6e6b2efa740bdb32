# Adds up the tests of a ctest log (LastTest.log): those inside each Criterion program, those
# that a shell test counts in its last line "N passed, N failed", else the program itself.
function end_of_program() {
    if (!in_program) return
    if (!ok && program_failed == 0) program_failed = 1
    if (ok && program_passed + program_failed == 0) program_passed = 1
    passed += program_passed; failed += program_failed
    in_program = 0
}
/^[0-9]+\/[0-9]+ Testing: / { end_of_program(); in_program = 1; ok = 0; program_passed = program_failed = 0 }
{ gsub(/\033\[[0-9;]*m/, "") }
/Synthesis: Tested: / {
    program_passed = $0; sub(/.*Passing: /, "", program_passed); program_passed += 0
    failing = $0; sub(/.*Failing: /, "", failing)
    crashing = $0; sub(/.*Crashing: /, "", crashing)
    program_failed = failing + crashing
}
/^[0-9]+ passed, [0-9]+ failed$/ { program_passed = $1; program_failed = $3 }
/^Test Passed\.$/ { ok = 1 }
END { end_of_program(); printf "%d passed, %d failed\n", passed, failed }
