# Headers that nearly every file includes are compiled once: a third of the processor time of a build.
# Of the standard library and of GoogleTest alone, which no change of this project touches. A file must
# still include what it needs: the presets debug, asan and tsan build without, and so does
# scripts/dev/headers_alone.py.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(HDPS_PRECOMPILED OFF)
endif()

set(HDPS_PRECOMPILED_HEADERS
    algorithm array atomic bit charconv chrono cmath condition_variable cstdint cstring deque functional
    limits map memory mutex numeric optional set span sstream string string_view tuple unordered_map
    utility variant vector)
list(TRANSFORM HDPS_PRECOMPILED_HEADERS REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>")

if(HDPS_PRECOMPILED)
  # The first as ccache asks for. The others: of code that was precompiled gcc 12 forgets that it is the
  # library's, and warns of what it then only seems to do. The presets without keep these warnings.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess;-Wno-array-bounds;-Wno-restrict;-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-error=maybe-uninitialized>")
  add_library(hdps_std_headers OBJECT ${CMAKE_BINARY_DIR}/empty_main.cc)
  target_precompile_headers(hdps_std_headers PRIVATE ${HDPS_PRECOMPILED_HEADERS})
  # A program, as tests are: a library is compiled for other addresses.
  add_executable(hdps_test_headers ${CMAKE_BINARY_DIR}/empty_main.cc)
  target_link_libraries(hdps_test_headers PRIVATE GTest::gmock)
  target_precompile_headers(hdps_test_headers PRIVATE ${HDPS_PRECOMPILED_HEADERS} <gmock/gmock.h>
                            <gtest/gtest.h>)
endif()

# A library whose files find these headers compiled.
function(hdps_precompiled library)
  if(HDPS_PRECOMPILED)
    target_precompile_headers(${library} REUSE_FROM hdps_std_headers)
  endif()
endfunction()

# A library that runs once a job and not once a row or message.
function(hdps_cold library)
  target_compile_options(${library} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>)
endfunction()
