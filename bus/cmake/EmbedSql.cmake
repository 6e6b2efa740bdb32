# embed_sql(target prefix dir): compiles the .sql files of a folder into a target.
#
#   dir/migrations/NNN_what.sql  ->  const cb_sql_file <prefix>_migrations[], sorted by number,
#                                    each with the SHA-256 of its bytes;
#                                    const size_t <prefix>_migrations_count
#   dir/queries/what.sql         ->  const char <prefix>_sql_what[]
#
# They are declared in the generated <prefix>_sql.h, which the target's sources can include.
# A changed, new or deleted .sql file regenerates both on the next build.
set(embed_sql_script ${CMAKE_CURRENT_LIST_DIR}/embed_sql_script.cmake)

function(embed_sql target prefix dir)
    set(out ${CMAKE_CURRENT_BINARY_DIR}/generated)
    file(GLOB inputs CONFIGURE_DEPENDS ${dir}/migrations/*.sql ${dir}/queries/*.sql)

    # The list itself is an input: a deleted file leaves no newer file behind.
    string(REPLACE ";" "\n" listing "${inputs}")
    file(CONFIGURE OUTPUT ${out}/${prefix}_sql.list CONTENT "${listing}\n" @ONLY)

    add_custom_command(
        OUTPUT ${out}/${prefix}_sql.c ${out}/${prefix}_sql.h
        COMMAND ${CMAKE_COMMAND} -D PREFIX=${prefix} -D LIST=${out}/${prefix}_sql.list
                -D OUT=${out}/${prefix}_sql -P ${embed_sql_script}
        DEPENDS ${inputs} ${out}/${prefix}_sql.list ${embed_sql_script}
        COMMENT "Embedding SQL as ${prefix}_sql"
        VERBATIM)
    target_sources(${target} PRIVATE ${out}/${prefix}_sql.c ${out}/${prefix}_sql.h)
    target_include_directories(${target} PUBLIC ${out})
endfunction()
