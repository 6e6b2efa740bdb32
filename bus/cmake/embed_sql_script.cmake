# Run by embed_sql() at build time: writes OUT.c and OUT.h from the .sql files named in LIST.
cmake_minimum_required(VERSION 3.25)

# One C line per line of SQL. Bytes are '\xNN' and not 0xNN, which would overflow a signed char.
function(c_bytes text result)
    string(HEX "${text}" hex)
    string(REGEX REPLACE "(..)" "'\\\\x\\1', " bytes "${hex}")
    string(REPLACE "'\\x0a', " "'\\x0a',\n    " bytes "${bytes}")
    set(${result} "    ${bytes}'\\0'" PARENT_SCOPE)
endfunction()

file(STRINGS ${LIST} files)
set(head "/* Generated from .sql files by embed_sql(). Do not edit. */\n")
get_filename_component(header ${OUT}.h NAME)
set(declarations "")
set(arrays "")
set(schema_table "")
set(schema_count 0)
set(function_table "")
set(function_count 0)
set(function_checksums "")
set(last_version -1)
set(marker "\n--: ")

# Puts the parts that a statement names with lines "--+ name" in their place.
function(insert_parts file statement result)
    string(REGEX MATCHALL "--\\+ [^\n]*" lines "${statement}")
    foreach(line IN LISTS lines)
        string(SUBSTRING "${line}" 4 -1 name)
        if(NOT DEFINED part_${name})
            message(FATAL_ERROR "${file}: there is no '--: part ${name}' before this '${line}'")
        endif()
        string(REPLACE "${line}" "${part_${name}}" statement "${statement}")
    endforeach()
    set(${result} "${statement}" PARENT_SCOPE)
endfunction()

# The statements of a file of queries, whose text the caller has read: each from its marker to the
# next. A part is kept for the statements after it, of this file and those that follow.
function(embed_queries file)
    set(rest "\n${text}")
    string(FIND "${rest}" "${marker}" at)
    if(at EQUAL -1)
        message(FATAL_ERROR "${file}: begin each statement with a line '--: name'")
    endif()
    while(NOT at EQUAL -1)
        math(EXPR at "${at} + 5")
        string(SUBSTRING "${rest}" ${at} -1 rest)
        string(FIND "${rest}" "\n" end)
        string(SUBSTRING "${rest}" 0 ${end} name)
        if(NOT name MATCHES "^(part )?[a-z0-9_]+$")
            message(FATAL_ERROR "${file}: name statements with a-z, 0-9 and _ only, not '${name}'")
        endif()
        string(SUBSTRING "${rest}" ${end} -1 rest)
        string(FIND "${rest}" "${marker}" at)
        string(SUBSTRING "${rest}" 0 ${at} statement)
        string(STRIP "${statement}" statement)
        if(name MATCHES "^part (.*)")
            set(part_${CMAKE_MATCH_1} "${statement}")
            set(part_${CMAKE_MATCH_1} "${statement}" PARENT_SCOPE)
            continue()
        endif()
        insert_parts(${file} "${statement}" statement)
        c_bytes("${statement}\n" bytes)
        string(APPEND declarations "extern const char ${PREFIX}_sql_${name}[];\n")
        string(APPEND arrays "const char ${PREFIX}_sql_${name}[] = {\n${bytes}\n};\n\n")
    endwhile()
    set(declarations "${declarations}" PARENT_SCOPE)
    set(arrays "${arrays}" PARENT_SCOPE)
endfunction()

foreach(file IN LISTS files)
    get_filename_component(stem ${file} NAME_WE)
    get_filename_component(folder ${file} DIRECTORY)
    get_filename_component(folder ${folder} NAME)
    if(NOT stem MATCHES "^[a-z0-9_]+$")
        message(FATAL_ERROR "${file}: name SQL files with a-z, 0-9 and _ only")
    endif()
    file(READ ${file} text)

    if(folder STREQUAL "queries")
        embed_queries(${file})
        continue()
    endif()

    c_bytes("${text}" bytes)
    file(SHA256 ${file} checksum)
    if(folder STREQUAL "functions")
        math(EXPR function_count "${function_count} + 1")
        string(APPEND function_checksums ${checksum})
        string(APPEND arrays "static const char functions_${stem}[] = {\n${bytes}\n};\n\n")
        string(APPEND function_table
               "    { 0, \"${stem}\", functions_${stem},\n      \"${checksum}\" },\n")
        continue()
    endif()

    if(NOT stem MATCHES "^0*([0-9]+)_(.+)$")
        message(FATAL_ERROR "${file}: name files of the schema NNN_what.sql")
    endif()
    set(version ${CMAKE_MATCH_1})
    set(name ${CMAKE_MATCH_2})
    if(NOT version GREATER last_version)
        message(FATAL_ERROR "${file}: another file has the number ${version}")
    endif()
    set(last_version ${version})
    math(EXPR schema_count "${schema_count} + 1")
    string(APPEND arrays "static const char schema_${version}[] = {\n${bytes}\n};\n\n")
    string(APPEND schema_table
           "    { ${version}, \"${name}\", schema_${version},\n      \"${checksum}\" },\n")
endforeach()

# A target that only has queries needs nothing of what schemas are made of.
set(include "")
if(schema_count GREATER 0)
    string(SHA256 functions_checksum "${function_checksums}")
    set(include "#include <stddef.h>\n\n#include \"sql.h\"\n\n")
    string(PREPEND declarations "extern const cb_sql_file ${PREFIX}_schema_files[];
extern const size_t ${PREFIX}_schema_files_count;
extern const cb_sql_file ${PREFIX}_function_files[];
extern const size_t ${PREFIX}_function_files_count;
extern const char ${PREFIX}_functions_checksum[];\n\n")
    string(APPEND arrays "const cb_sql_file ${PREFIX}_schema_files[] = {\n${schema_table}};
const size_t ${PREFIX}_schema_files_count = ${schema_count};

const cb_sql_file ${PREFIX}_function_files[] = {\n${function_table}};
const size_t ${PREFIX}_function_files_count = ${function_count};
const char ${PREFIX}_functions_checksum[] = \"${functions_checksum}\";\n")
endif()
file(WRITE ${OUT}.h "${head}#pragma once\n\n${include}${declarations}")
file(WRITE ${OUT}.c "${head}#include \"${header}\"\n\n${arrays}")
