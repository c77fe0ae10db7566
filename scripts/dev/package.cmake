# Defines the installed package: headers, static libraries, and find_package(hdps) with the targets
# hdps::common, hdps::kernels, ..., and hdps::hdps for all of them.
include(CMakePackageConfigHelpers)
get_property(layers GLOBAL PROPERTY HDPS_LAYERS)
add_library(hdps_all INTERFACE)
target_link_libraries(hdps_all INTERFACE ${layers})
# As for the library, so that a program's own optimizer gives the same bits at every vector width.
target_compile_options(hdps_all INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>")
set_target_properties(hdps_all PROPERTIES EXPORT_NAME hdps)
install(TARGETS hdps_all EXPORT hdpsTargets)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/hdps)
configure_package_config_file(scripts/dev/hdpsConfig.cmake.in ${CMAKE_BINARY_DIR}/hdpsConfig.cmake
                              INSTALL_DESTINATION ${package})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/hdpsConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/hdpsConfig.cmake ${CMAKE_BINARY_DIR}/hdpsConfigVersion.cmake
        DESTINATION ${package})
install(FILES scripts/dev/libraries.cmake DESTINATION ${package} RENAME hdpsLibraries.cmake)
install(EXPORT hdpsTargets NAMESPACE hdps:: DESTINATION ${package})
