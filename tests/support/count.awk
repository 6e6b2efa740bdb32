# Adds up the tests of a ctest log (LastTest.log): those inside each Criterion program, those that a shell test counts
# in its last line "N passed, N failed, N skipped" (the last of the three only if there are any), else the program
# itself. What was skipped has a line "SKIPPED: why" each; Criterion does not count it at all.
function end_of_program() {
    if (!in_program) return
    if (!says_skipped) program_skipped = skip_lines
    if (!ok && program_failed == 0) program_failed = 1
    if (ok && program_passed + program_failed + program_skipped == 0) program_passed = 1
    passed += program_passed; failed += program_failed; skipped += program_skipped
    in_program = 0
}
/^[0-9]+\/[0-9]+ Testing: / {
    end_of_program()
    in_program = 1
    ok = says_skipped = skip_lines = program_passed = program_failed = program_skipped = 0
}
{ gsub(/\033\[[0-9;]*m/, "") }
/Synthesis: Tested: / {
    program_passed = $0; sub(/.*Passing: /, "", program_passed); program_passed += 0
    failing = $0; sub(/.*Failing: /, "", failing)
    crashing = $0; sub(/.*Crashing: /, "", crashing)
    program_failed = failing + crashing
}
/^SKIPPED: / { skip_lines++ }
/^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$/ {
    program_passed = $1; program_failed = $3; program_skipped = $5 + 0
    says_skipped = 1
}
/^Test Passed\.$/ { ok = 1 }
END {
    end_of_program()
    printf "%d passed, %d failed%s\n", passed, failed, skipped ? ", " skipped " skipped" : ""
}
