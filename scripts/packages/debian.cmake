# Makes packages of Debian 12 with cpack: hdps, hdps-dev and, where it is built, python3-hdps. Call it by
# scripts/dev/package.sh, which sets the time of the files.
set(HDPS_MAINTAINER "hdps maintainers <maintainers@hdps.example>" CACHE STRING "Who makes the packages")
file(STRINGS scripts/packages/changelog newest LIMIT_COUNT 1)
if(NOT newest MATCHES "^hdps \\(${PROJECT_VERSION}\\) ")
  message(FATAL_ERROR "scripts/packages/changelog begins \"${newest}\": expected an entry for ${PROJECT_VERSION}")
endif()
find_program(GZIP gzip REQUIRED)
execute_process(COMMAND ${GZIP} -9nc scripts/packages/changelog WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
                OUTPUT_FILE ${CMAKE_BINARY_DIR}/changelog.gz COMMAND_ERROR_IS_FATAL ANY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS scripts/packages/changelog)

set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_CONTACT "${HDPS_MAINTAINER}")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE gzip)  # package.sh compresses them once more.
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# hdps_package(COMPONENT NAME SECTION [DEPENDS packages] [FILES control files] TEXT description)
function(hdps_package component name)
  cmake_parse_arguments(P "" "SECTION;DEPENDS;TITLE;TEXT" "FILES" ${ARGN})
  string(TOUPPER ${component} upper)
  foreach(value PACKAGE_NAME=${name} PACKAGE_SECTION=${P_SECTION} "PACKAGE_DEPENDS=${P_DEPENDS}"
          "PACKAGE_CONTROL_EXTRA=${P_FILES}" "DESCRIPTION=${P_TITLE}\n${P_TEXT}")
    string(REGEX MATCH "^([A-Z_]+)=(.*)$" _ "${value}")
    set(CPACK_DEBIAN_${upper}_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}" PARENT_SCOPE)
  endforeach()
  install(FILES scripts/packages/copyright ${CMAKE_BINARY_DIR}/changelog.gz
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${component} EXCLUDE_FROM_ALL)
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
endfunction()

set(CPACK_COMPONENTS_ALL)
hdps_package(programs hdps SECTION science DEPENDS adduser
  FILES ${CMAKE_SOURCE_DIR}/scripts/packages/postinst ${CMAKE_SOURCE_DIR}/scripts/packages/prerm
        ${CMAKE_SOURCE_DIR}/scripts/packages/postrm
  TITLE "parameter server that trains recommendation models"
  TEXT "Trains click-through and recommendation models whose embedding tables do not
fit on a GPU. Servers hold rows in host memory, workers compute the dense
layers, and a scheduler leads them, in one process or on a cluster.")
string(JOIN ", " dev g++ pkg-config libzmq3-dev cppzmq-dev libsodium-dev libssl-dev libmicrohttpd-dev libsimdjson-dev
       libtbb-dev libdnnl-dev librocksdb-dev libgloo-dev prometheus-cpp-dev libgflags-dev libgoogle-glog-dev
       libxxhash-dev zlib1g-dev libzstd-dev)
if(HDPS_WITH_TENSORBOARD OR HDPS_WITH_TFRECORD)
  string(APPEND dev ", libprotobuf-dev, libisal-dev")
endif()
if(HDPS_WITH_KAFKA)
  string(APPEND dev ", librdkafka-dev")
endif()
if(HDPS_WITH_ELECTION)
  string(APPEND dev ", libcurl4-openssl-dev")
endif()
hdps_package(development hdps-dev SECTION libdevel DEPENDS "${dev}"
  TITLE "parameter server that trains recommendation models - libraries"
  TEXT "Headers, static libraries, and the files of CMake and pkg-config for programs
with layers, optimizers or loops of their own.")
if(HDPS_WITH_PYTHON)
  math(EXPR next "${HDPS_PYTHON_MINOR} + 1")
  hdps_package(dist_packages python3-hdps SECTION python
    FILES ${CMAKE_SOURCE_DIR}/scripts/packages/python/postinst ${CMAKE_SOURCE_DIR}/scripts/packages/python/prerm
    DEPENDS "python3 (>= 3.${HDPS_PYTHON_MINOR}), python3 (<< 3.${next}), python3-numpy"
    TITLE "parameter server that trains recommendation models - Python"
    TEXT "The module hdps: training, prediction and tables of hdps from Python.")
endif()
include(CPack)
