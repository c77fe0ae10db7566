# Functions for layers: a layer is one folder, one static library, and a link test that it stands alone.
file(WRITE ${CMAKE_BINARY_DIR}/empty_main.cc "int main() { return 0; }\n")

include(GNUInstallDirs)
include(scripts/dev/precompiled.cmake)

# Makes a library, and its file set of headers, a part of the installed package: hdps_common is
# hdps::common there. Headers keep their folders, below include/hdps.
function(hdps_install name)
  string(REGEX REPLACE "^hdps_" "" exported ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${exported})
  target_compile_features(${name} PUBLIC cxx_std_20)
  install(TARGETS ${name} EXPORT hdpsTargets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
          FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/hdps COMPONENT development)
  set_property(GLOBAL APPEND PROPERTY HDPS_LAYERS ${name})
endfunction()

# Gives a library its headers; the package installs those in the list of scripts/dev/public_headers.py.
set(list_of_headers ${CMAKE_SOURCE_DIR}/scripts/dev/public_headers.txt)
file(STRINGS ${list_of_headers} HDPS_PUBLIC_HEADERS REGEX "^[^#]")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list_of_headers})
function(hdps_headers name)
  set(public)
  foreach(header ${ARGN})
    file(REAL_PATH ${header} path)
    file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR} ${path})
    if(path IN_LIST HDPS_PUBLIC_HEADERS)
      list(APPEND public ${header})
    endif()
  endforeach()
  target_sources(${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${CMAKE_SOURCE_DIR} FILES ${public})
endfunction()

# COLD: code that runs once a job, not once a row or message. It compiles a fifth faster.
function(add_layer name)
  cmake_parse_arguments(L "COLD" "" "SOURCES;HEADERS;DEPENDS;LIBRARIES" ${ARGN})
  add_library(${name} STATIC ${L_SOURCES})
  hdps_headers(${name} ${L_HEADERS})
  hdps_precompiled(${name})
  if(L_COLD)
    hdps_cold(${name})
  endif()
  target_link_libraries(${name} PUBLIC ${L_DEPENDS} PRIVATE ${L_LIBRARIES})
  hdps_install(${name})
  add_executable(${name}_link_test ${CMAKE_BINARY_DIR}/empty_main.cc)
  target_link_libraries(${name}_link_test PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,${name}>")
endfunction()

# Adds a test program; each TEST in it is a separate test of ctest.
# KIND: unit (default), unit_concurrent (threads meet in it: also run under the thread sanitizer),
# simulation, or process (starts daemons or reads their files; not run under sanitizers).
# NUMERIC FILTER: results of these tests, as --gtest_filter names them, depend on the width of the
# machine's vectors. Besides each test at the widest there are NAME.plain, NAME.avx2 and NAME.avx512:
# all of these under that limit. A width that the machine lacks is skipped, by that name.
function(add_layer_test name)
  cmake_parse_arguments(T "" "TIMEOUT;KIND;NUMERIC" "SOURCES;DEPENDS" ${ARGN})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 300)
  endif()
  if(HDPS_SANITIZE)  # They are several times slower.
    math(EXPR T_TIMEOUT "3 * ${T_TIMEOUT}")
  endif()
  if(NOT T_KIND)
    set(T_KIND unit)
  endif()
  add_executable(${name} ${T_SOURCES})
  # And a quarter faster this way otherwise.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1> ${HDPS_TEST_OPTIONS})
  target_link_libraries(${name} PRIVATE ${T_DEPENDS} GTest::gmock)
  if(HDPS_PRECOMPILED)
    target_precompile_headers(${name} REUSE_FROM hdps_test_headers)
  endif()
  # A single label, because a list would not reach the tests discovered in a program.
  set(label ${T_KIND})
  foreach(sanitizer asan tsan)
    if(name IN_LIST HDPS_${sanitizer}_share)
      string(APPEND label .${sanitizer})
    endif()
  endforeach()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT ${T_TIMEOUT} LABELS ${label} ENVIRONMENT
                       TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/scripts/dev/tsan.supp)
  if(T_NUMERIC)
    target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/kernels/vector_width_main.cc)
  else()
    target_link_libraries(${name} PRIVATE GTest::gtest_main)
  endif()
  if(T_NUMERIC AND NOT HDPS_SANITIZE)
    foreach(width plain avx2 avx512)
      add_test(NAME ${name}.${width} COMMAND ${name} --gtest_filter=${T_NUMERIC})
      # Exit status of the program: see vector_width_main.cc.
      set_tests_properties(${name}.${width} PROPERTIES TIMEOUT 900 LABELS ${T_KIND}
                           SKIP_RETURN_CODE 77 ENVIRONMENT HDPS_MAX_VECTOR_WIDTH=${width})
    endforeach()
  endif()
  if(NOT T_KIND STREQUAL process)
    add_dependencies(asan_tests ${name})
  endif()
  if(T_KIND STREQUAL unit_concurrent)
    add_dependencies(tsan_tests ${name})
  endif()
endfunction()
add_custom_target(asan_tests)  # Built by scripts/night.sh for the address sanitizer.
add_custom_target(tsan_tests)  # Likewise for the thread sanitizer.
# And what .ci/run builds: bytes from outside and memory; threads that meet. A program that is no longer
# there fails the configuration.
set(HDPS_asan_share wire_test etcd_test manifest_test data_test embedding_test server_test serve_requests_test
    cuda_stand_in_test)
set(HDPS_tsan_share wire_test platform_test collective_test embedding_threads_test election_test)
foreach(sanitizer asan tsan)
  add_custom_target(${sanitizer}_share)
  add_dependencies(${sanitizer}_share ${HDPS_${sanitizer}_share})
endforeach()

# Plain loops of a layer that the compiler is to make vectors of: no errno, no traps, so that square
# roots and choices between floats become vectors too, with the same bits.
function(hdps_vector_sources)
  set_source_files_properties(${ARGN} PROPERTIES
    COMPILE_OPTIONS "$<$<CONFIG:Release>:-O3;-fno-math-errno;-fno-trapping-math>"
    SKIP_PRECOMPILE_HEADERS ON)  # These options change what <cmath> defines.
endfunction()
