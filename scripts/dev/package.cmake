# Defines what is installed. Component development: headers, static libraries, pkg-config's file, and
# find_package(hdps) with the targets hdps::common, hdps::kernels, ..., and hdps::hdps for all of them.
# Component programs: programs, man pages, completion, units of systemd and examples.
include(CMakePackageConfigHelpers)
get_property(layers GLOBAL PROPERTY HDPS_LAYERS)
add_library(hdps_all INTERFACE)
target_link_libraries(hdps_all INTERFACE ${layers})
# As for the library, so that a program's own optimizer gives the same bits at every vector width.
target_compile_options(hdps_all INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>")
set_target_properties(hdps_all PROPERTIES EXPORT_NAME hdps)
install(TARGETS hdps_all EXPORT hdpsTargets COMPONENT development)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/hdps)
configure_package_config_file(scripts/dev/hdpsConfig.cmake.in ${CMAKE_BINARY_DIR}/hdpsConfig.cmake
                              INSTALL_DESTINATION ${package})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/hdpsConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/hdpsConfig.cmake ${CMAKE_BINARY_DIR}/hdpsConfigVersion.cmake
        DESTINATION ${package} COMPONENT development)
install(FILES scripts/dev/libraries.cmake DESTINATION ${package} RENAME hdpsLibraries.cmake COMPONENT development)
install(EXPORT hdpsTargets NAMESPACE hdps:: DESTINATION ${package} COMPONENT development)

# For programs built without CMake: pkg-config --cflags --libs hdps.
set(HDPS_PC_LAYERS)
foreach(layer ${layers})
  get_target_property(type ${layer} TYPE)
  if(type STREQUAL STATIC_LIBRARY)
    string(APPEND HDPS_PC_LAYERS " -l${layer}")
  endif()
endforeach()
set(HDPS_PC_REQUIRES "libsodium libcrypto libxxhash libmicrohttpd simdjson zlib libzstd prometheus-cpp-core gflags libglog")
set(HDPS_PC_LIBRARIES "-lzmq -ldnnl -lrocksdb -lgloo -ltbb -l:libgomp.so.1 -ldl")
if(HDPS_WITH_TENSORBOARD OR HDPS_WITH_TFRECORD)
  string(APPEND HDPS_PC_LIBRARIES " -lprotobuf -lisal")
endif()
if(HDPS_WITH_KAFKA)
  string(APPEND HDPS_PC_LIBRARIES " -lrdkafka")
endif()
if(HDPS_WITH_ELECTION)
  string(APPEND HDPS_PC_REQUIRES " libcurl")
endif()
if(HDPS_WITH_CUDA)
  string(APPEND HDPS_PC_LIBRARIES " -L\${libdir}/hdps -lcudart_static -lrt")
  install(FILES ${CUDA_cudart_static_LIBRARY} DESTINATION ${CMAKE_INSTALL_LIBDIR}/hdps COMPONENT development)
endif()
configure_file(scripts/packages/hdps.pc.in hdps.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/hdps.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

install(TARGETS hdps hdps-scheduler hdps-server hdps-worker RUNTIME COMPONENT programs)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(manuals ${CMAKE_BINARY_DIR}/manuals)
add_custom_command(
  OUTPUT ${manuals}/man1/hdps.1.gz
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/scripts/dev/manuals.py --bin=$<TARGET_FILE_DIR:hdps> --out=${manuals}
  DEPENDS hdps hdps-scheduler hdps-server hdps-worker scripts/dev/manuals.py scripts/packages/changelog
  VERBATIM)
add_custom_target(hdps_manuals ALL DEPENDS ${manuals}/man1/hdps.1.gz)
install(DIRECTORY ${manuals}/man1/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT programs)
install(DIRECTORY ${manuals}/bash/ DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT programs)
install(DIRECTORY ${manuals}/zsh/ DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT programs)
install(DIRECTORY ${manuals}/fish/ DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT programs)

# The units of scripts/systemd with the places of an installed package.
foreach(role scheduler server worker)
  file(READ scripts/systemd/hdps-${role}@.service unit)
  string(REPLACE "/opt/hdps/bin/" "/usr/bin/" unit "${unit}")
  string(REPLACE "Documentation=file:/opt/hdps/docs/how_to/several_machines.md" "Documentation=man:hdps-${role}(1)"
         unit "${unit}")
  file(CONFIGURE OUTPUT systemd/hdps-${role}@.service CONTENT "${unit}" @ONLY)
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS scripts/systemd)
install(DIRECTORY ${CMAKE_BINARY_DIR}/systemd/ DESTINATION lib/systemd/system COMPONENT programs)
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/hdps/examples COMPONENT programs)

# What is to be built before an installation.
add_custom_target(hdps_installed DEPENDS hdps_manuals ${layers})
if(HDPS_WITH_PYTHON)
  add_dependencies(hdps_installed hdps_python)
endif()
include(scripts/packages/debian.cmake)
