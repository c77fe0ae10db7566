# Paths are taken from worker/, whose CMakeLists.txt includes this file.
add_layer(hdps_worker_data
  SOURCES data/number.cc
  HEADERS data/batch.h data/batch_reader.h data/number.h
  DEPENDS hdps_common
  LIBRARIES PkgConfig::ZLIB PkgConfig::ZSTD glog::glog)
