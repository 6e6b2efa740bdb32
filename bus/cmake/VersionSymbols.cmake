# version_symbols(target): a shared library exports what symbols.map says, with its version.
set(symbols_map ${CMAKE_CURRENT_LIST_DIR}/symbols.map CACHE INTERNAL "")

function(version_symbols target)
    target_link_options(${target} PRIVATE LINKER:--version-script=${symbols_map})
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${symbols_map})
endfunction()
