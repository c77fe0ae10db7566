# Precompiles headers that nearly every file includes, which saves a third of a build's processor time.
# They are only those of the standard library and of GoogleTest, which no change here affects. A file
# must still include what it needs: the presets debug and asan build without precompiled headers, and so do
# scripts/dev/headers_alone.py and the step of .ci/run that checks locks.

set(HDPS_PRECOMPILED_HEADERS
    algorithm array atomic bit charconv chrono cmath condition_variable cstdint cstring deque functional
    limits map memory mutex numeric optional set span sstream string string_view tuple unordered_map
    utility variant vector)
list(TRANSFORM HDPS_PRECOMPILED_HEADERS REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>")

# The tested code is in the libraries; a test's own code compiles a third faster this way under a sanitizer.
set(HDPS_TEST_OPTIONS $<$<CONFIG:RelWithDebInfo>:-O0>)

if(HDPS_PRECOMPILED)
  # ccache needs the first option. The others silence false warnings: gcc 12 forgets that precompiled
  # code is the library's. The presets without precompiled headers keep these warnings.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess;-Wno-array-bounds;-Wno-restrict;-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-error=maybe-uninitialized>")
  else()
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
  endif()
  add_library(hdps_std_headers OBJECT ${CMAKE_BINARY_DIR}/empty_main.cc)
  target_precompile_headers(hdps_std_headers PRIVATE ${HDPS_PRECOMPILED_HEADERS})
  # A program like the tests, because libraries have other options for addresses.
  add_executable(hdps_test_headers ${CMAKE_BINARY_DIR}/empty_main.cc)
  target_link_libraries(hdps_test_headers PRIVATE GTest::gmock)
  target_compile_options(hdps_test_headers PRIVATE ${HDPS_TEST_OPTIONS})
  target_precompile_headers(hdps_test_headers PRIVATE ${HDPS_PRECOMPILED_HEADERS} <gmock/gmock.h>
                            <gtest/gtest.h>)
endif()

# Gives a library the precompiled headers.
function(hdps_precompiled library)
  if(HDPS_PRECOMPILED)
    target_precompile_headers(${library} REUSE_FROM hdps_std_headers)
  endif()
endfunction()

# Marks a library that runs once a job, not once a row or message.
function(hdps_cold library)
  target_compile_options(${library} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>)
endfunction()
