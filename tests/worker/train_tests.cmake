# Collectives, the parts of a step, the dense state, the channel between a worker's threads.
add_layer_test(collective_test
  SOURCES collective_test.cc
  DEPENDS hdps_worker_exchange hdps_common
  KIND unit_concurrent)
add_layer_test(train_test
  SOURCES ahead_choice_test.cc dense_state_test.cc node_channel_test.cc row_gather_test.cc step_parts_test.cc
  DEPENDS hdps_worker_train hdps_common
  KIND unit_concurrent)
add_layer_test(cache_test
  SOURCES hot_rows_test.cc
  DEPENDS hdps_worker_cache hdps_worker_data hdps_common
  KIND unit_concurrent)
add_layer_test(training_test
  SOURCES training_test.cc
  DEPENDS hdps_local_cluster hdps_scoring hdps_common glog::glog)
add_layer_test(device_cache_test
  SOURCES device_cache_test.cc
  DEPENDS hdps_local_cluster hdps_worker_data hdps_common glog::glog)
