# What `cmake --install` puts where: library, CLI, headers, pkg-config file, CMake package. The latter three are the
# component "development".
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/commandbus)
set(generated ${CMAKE_CURRENT_BINARY_DIR}/package)

# install_library(<target>): the worker's and the process's folders have one too.
function(install_library target)
    install(TARGETS ${target} EXPORT commandbus-targets LIBRARY NAMELINK_COMPONENT development
            ARCHIVE COMPONENT development FILE_SET HEADERS COMPONENT development)
endfunction()
install_library(commandbus)
install(TARGETS commandbus-cli)
install(FILES cli/completion.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        RENAME commandbus OPTIONAL)

install(EXPORT commandbus-targets NAMESPACE commandbus:: DESTINATION ${package_dir} COMPONENT development)
configure_package_config_file(cmake/commandbus-config.cmake.in ${generated}/commandbus-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${generated}/commandbus-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${generated}/commandbus-config.cmake ${generated}/commandbus-config-version.cmake
        DESTINATION ${package_dir} COMPONENT development)

# install_pkg_config(<name>.pc.in): the worker's and the process's folders have one too. The prefix is found from where
# the .pc file lies, so `cmake --install --prefix` may move it.
function(install_pkg_config template)
    file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
    string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
    cmake_path(GET template STEM LAST_ONLY name)
    configure_file(${template} ${CMAKE_CURRENT_BINARY_DIR}/package/${name} @ONLY)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/package/${name}
            DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endfunction()
install_pkg_config(cmake/commandbus.pc.in)
