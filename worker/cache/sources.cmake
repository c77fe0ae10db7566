# Rows that are kept at the worker.
add_layer(hdps_worker_cache
  SOURCES cache/frequent_keys.cc cache/hot_keys.cc cache/hot_sum.cc
  HEADERS cache/frequent_keys.h cache/hot_keys.h cache/hot_sum.h
  DEPENDS hdps_worker_exchange hdps_embedding hdps_kernels hdps_common
  LIBRARIES glog::glog)
