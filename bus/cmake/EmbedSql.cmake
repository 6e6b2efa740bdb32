# embed_sql(target prefix dir [FUNCTIONS subject...]): compiles the .sql files of a folder into a target.
#
#   dir/schema/NNN_what.sql     ->  const cb_sql_file <prefix>_schema_files[], sorted by number, each
#                                   with the SHA-256 of its bytes; <prefix>_schema_files_count
#   dir/functions/subject.sql   ->  const cb_sql_file <prefix>_function_files[], in the order of
#                                   FUNCTIONS: what uses a view or a type comes after it;
#                                   <prefix>_function_files_count; <prefix>_functions_checksum, the
#                                   SHA-256 of all their checksums
#   dir/queries/subject.sql     ->  const char <prefix>_sql_<name>[] for each statement that begins
#                                   with a line "--: name"; in it "--+ part" stands for the
#                                   text behind a line "--: part part"
#
# They are declared in the generated <prefix>_sql.h, which the target's sources can include.
# A changed, new or deleted .sql file regenerates both on the next build.
set(embed_sql_script ${CMAKE_CURRENT_LIST_DIR}/embed_sql_script.cmake)

function(embed_sql target prefix dir)
    cmake_parse_arguments(PARSE_ARGV 3 arg "" "" FUNCTIONS)
    set(out ${CMAKE_CURRENT_BINARY_DIR}/generated)
    file(GLOB inputs CONFIGURE_DEPENDS ${dir}/schema/*.sql ${dir}/queries/*.sql)
    list(SORT inputs COMPARE NATURAL)

    file(GLOB function_files CONFIGURE_DEPENDS ${dir}/functions/*.sql)
    foreach(subject IN LISTS arg_FUNCTIONS)
        list(APPEND inputs ${dir}/functions/${subject}.sql)
        list(REMOVE_ITEM function_files ${dir}/functions/${subject}.sql)
    endforeach()
    if(function_files)
        message(FATAL_ERROR "name these among the FUNCTIONS of embed_sql(): ${function_files}")
    endif()

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
