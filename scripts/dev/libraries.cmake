# Finds the libraries that the layers need, for the build and for users of the installed package.
find_package(Threads REQUIRED)
find_package(TBB REQUIRED)
find_package(gflags REQUIRED)
find_package(glog REQUIRED)
find_package(PkgConfig REQUIRED)
# Not by pkg-config: libzmq's file lists its own build dependencies, in an order that changes.
find_path(ZMQ_INCLUDE_DIR zmq.hpp REQUIRED)
find_library(ZMQ_LIBRARY zmq REQUIRED)
add_library(zmq UNKNOWN IMPORTED)
set_target_properties(zmq PROPERTIES IMPORTED_LOCATION ${ZMQ_LIBRARY}
                      INTERFACE_INCLUDE_DIRECTORIES ${ZMQ_INCLUDE_DIR})
# Not by its CMake package, which also asks for the headers of OpenCL. It computes with OpenMP.
find_library(DNNL_LIBRARY dnnl REQUIRED)
find_library(GOMP_LIBRARY NAMES libgomp.so.1 REQUIRED)
# Nor by its CMake package, which searches for all of its own build dependencies.
find_path(ROCKSDB_INCLUDE_DIR rocksdb/db.h REQUIRED)
find_library(ROCKSDB_LIBRARY rocksdb REQUIRED)
add_library(rocksdb UNKNOWN IMPORTED)
set_target_properties(rocksdb PROPERTIES IMPORTED_LOCATION ${ROCKSDB_LIBRARY}
                      INTERFACE_INCLUDE_DIRECTORIES ${ROCKSDB_INCLUDE_DIR})
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(CRYPTO REQUIRED IMPORTED_TARGET libcrypto)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(MICROHTTPD REQUIRED IMPORTED_TARGET libmicrohttpd)
pkg_check_modules(SIMDJSON REQUIRED IMPORTED_TARGET simdjson)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
# The package also has a web server, which is not linked.
pkg_check_modules(PROMETHEUS REQUIRED IMPORTED_TARGET prometheus-cpp-core)
find_package(Gloo CONFIG REQUIRED)
