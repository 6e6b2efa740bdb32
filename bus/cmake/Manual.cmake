# add_manual(<program> <source> <library>...): the page <program>.1, in share/man/man1 of the build and
# of an installation. <source> and the libraries make the program that writes it, from the tables that
# <program> prints for --help.
function(add_manual program source)
    set(folder ${PROJECT_BINARY_DIR}/share/man/man1)
    set(page ${folder}/${program}.1)
    add_executable(${program}-man ${source})
    # Nobody calls it but this build.
    set_target_properties(${program}-man PROPERTIES
                          RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
    target_link_libraries(${program}-man PRIVATE ${ARGN})
    file(MAKE_DIRECTORY ${folder})
    add_custom_command(OUTPUT ${page} COMMAND ${program}-man > ${page} DEPENDS ${program}-man
                       COMMENT "Writing ${program}.1")
    add_custom_target(${program}-page ALL DEPENDS ${page})
    # The image leaves them out: nobody reads manuals there.
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT manual)
endfunction()
