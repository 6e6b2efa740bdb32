# Run by embed_sql() at build time: writes OUT.c and OUT.h from the .sql files named in LIST.
cmake_minimum_required(VERSION 3.25)

# One C line per line of SQL. Bytes are '\xNN' and not 0xNN, which would overflow a signed char.
function(c_bytes file result)
    file(READ ${file} hex HEX)
    string(REGEX REPLACE "(..)" "'\\\\x\\1', " bytes "${hex}")
    string(REPLACE "'\\x0a', " "'\\x0a',\n    " bytes "${bytes}")
    set(${result} "    ${bytes}'\\0'" PARENT_SCOPE)
endfunction()

file(STRINGS ${LIST} files)
list(SORT files COMPARE NATURAL)

set(head "/* Generated from .sql files by embed_sql(). Do not edit. */\n")
get_filename_component(header ${OUT}.h NAME)
set(declarations "")
set(arrays "")
set(table "")
set(count 0)
set(last_version -1)

foreach(file IN LISTS files)
    get_filename_component(stem ${file} NAME_WE)
    get_filename_component(folder ${file} DIRECTORY)
    get_filename_component(folder ${folder} NAME)
    if(NOT stem MATCHES "^[a-z0-9_]+$")
        message(FATAL_ERROR "${file}: name SQL files with a-z, 0-9 and _ only")
    endif()
    c_bytes(${file} bytes)

    if(folder STREQUAL "queries")
        string(APPEND declarations "extern const char ${PREFIX}_sql_${stem}[];\n")
        string(APPEND arrays "const char ${PREFIX}_sql_${stem}[] = {\n${bytes}\n};\n\n")
        continue()
    endif()

    if(NOT stem MATCHES "^0*([0-9]+)_(.+)$")
        message(FATAL_ERROR "${file}: name migrations NNN_what.sql")
    endif()
    set(version ${CMAKE_MATCH_1})
    if(NOT version GREATER last_version)
        message(FATAL_ERROR "${file}: another migration has the number ${version}")
    endif()
    set(last_version ${version})
    math(EXPR count "${count} + 1")
    string(APPEND arrays "static const char migration_${version}[] = {\n${bytes}\n};\n\n")
    set(name ${CMAKE_MATCH_2})
    file(SHA256 ${file} checksum)
    string(APPEND table "    { ${version}, \"${name}\", migration_${version},\n      \"${checksum}\" },\n")
endforeach()

# Who only asks needs nothing of what the migrations are made of.
set(include "")
if(count GREATER 0)
    set(include "#include <stddef.h>\n\n#include \"sql.h\"\n\n")
    string(PREPEND declarations "extern const cb_sql_file ${PREFIX}_migrations[]; /* Ends with an entry whose text is NULL. */
extern const size_t ${PREFIX}_migrations_count;\n\n")
    string(APPEND arrays "const cb_sql_file ${PREFIX}_migrations[] = {\n${table}    { 0, NULL, NULL, NULL },\n};
const size_t ${PREFIX}_migrations_count = ${count};\n")
endif()
file(WRITE ${OUT}.h "${head}#pragma once\n\n${include}${declarations}")
file(WRITE ${OUT}.c "${head}#include \"${header}\"\n\n${arrays}")
